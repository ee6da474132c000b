"""Takes jobs of one tag off the queue, and loses none when it is interrupted."""

from __future__ import annotations

import enum
import itertools
import logging

import anyio
from nats.aio.msg import Msg

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.consumer import Consumer
from pyoco_runtime.jetstream.delivery import delivery_from
from pyoco_runtime.jetstream.inbox import Inbox
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Refused, Requests
from pyoco_runtime.jetstream.resources import WORK_STREAM
from pyoco_runtime.jetstream.translate import translating
from pyoco_runtime.ports import Delivery

_log = logging.getLogger(__name__)

SEC = 1_000_000_000
TAKE_SEC = 2.0  # the server answers at once, except while MaxAckPending is reached: then not at all
QUIET_SEC = 0.1  # after a first job: the server sends the others with it, or cannot just now
STAND_SEC = 30.0
HEARTBEAT_SEC = 5.0
DEAF_SEC = 2 * HEARTBEAT_SEC + 1  # two missed heartbeats
WITHDRAW_SEC = 2.0
PAUSE_SEC = 1.0  # a consumer that is full must not be asked in a busy loop

_STANDING = f'{{"batch":1,"expires":{int(STAND_SEC * SEC)},"idle_heartbeat":{int(HEARTBEAT_SEC * SEC)}}}'.encode()


class News(enum.Enum):
    """What a message of the server means for the open request."""

    JOB = enum.auto()
    NONE_NOW = enum.auto()
    """The request has ended."""
    FULL = enum.auto()
    """The request was refused, because others have all that may be out at a time."""
    NOTHING = enum.auto()
    """A heartbeat, or about an older request."""


class NatsPuller:
    """Implements ports.Puller with pull requests of its own.

    A request that ends by itself (batch full, or a status message) leaves nothing behind. Any other, be it cancelled or
    timed out, is withdrawn: UNSUB, which makes the server drop it; a question and its answer, after which everything
    that the server had sent has arrived; then what arrived is given back. When the connection is cut, however shortly,
    both calls raise NatsUnavailable, because the server may not know their requests any more: call again once it is up.
    """

    def __init__(self, link: NatsLink, requests: Requests, consumer: Consumer) -> None:
        self._link = link
        self._requests = requests
        self._consumer = consumer
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{WORK_STREAM}.{consumer.name}"
        self._tokens = itertools.count(1)
        self._inbox: Inbox | None = None
        self.strays = 0
        """How many jobs came that nobody waited for any more; they were given back."""

    async def take(self, limit: int) -> list[Delivery]:
        if self._consumer.max_batch > 0:
            limit = min(limit, self._consumer.max_batch)
        inbox = await self._ready()
        came: list[Msg] = []
        ended = False
        try:
            await self._take(inbox, limit, came)
            ended = True
        except NatsUnavailable:
            if not came:
                raise
            ended = True  # what came is ours, and the request is gone with the connection
        finally:
            if not ended:
                await self._withdraw(came)
        return [self._delivery(message) for message in came]

    async def wait(self) -> Delivery:
        while True:
            message = await self._stand()
            if message is not None:
                return self._delivery(message)

    async def close(self) -> None:
        """Leave nothing behind."""
        await self._withdraw([])

    # -- one request ---------------------------------------------------------------------------------------------------

    async def _take(self, inbox: Inbox, limit: int, came: list[Msg]) -> None:
        token = str(next(self._tokens))
        await inbox.send(self._subject, b'{"batch":%d,"no_wait":true}' % limit, token)
        while len(came) < limit:
            message = await inbox.next(QUIET_SEC if came else TAKE_SEC)
            if message is None:
                with translating(), anyio.fail_after(WITHDRAW_SEC):
                    came += await self._drained()
                return
            match _news(inbox, message, token):
                case News.JOB:
                    came.append(message)
                case News.NONE_NOW | News.FULL:
                    return
                case News.NOTHING:
                    pass

    async def _stand(self) -> Msg | None:
        """Wait for a job with one standing request; None when that has ended without one."""
        inbox = await self._ready()
        ended = False
        try:
            token = str(next(self._tokens))
            await inbox.send(self._subject, _STANDING, token)
            news, message = await self._first(inbox, token)
            ended = True
        finally:
            if not ended:
                await self._withdraw([])
        if news is News.FULL:
            await anyio.sleep(PAUSE_SEC)
        return message

    async def _first(self, inbox: Inbox, token: str) -> tuple[News, Msg | None]:
        while True:
            message = await inbox.next(DEAF_SEC)
            if message is None:
                with translating(), anyio.fail_after(WITHDRAW_SEC):
                    late = await self._drained()
                return News.NONE_NOW, late[0] if late else None
            match _news(inbox, message, token):
                case News.JOB:
                    return News.JOB, message
                case News.NONE_NOW | News.FULL as news:
                    return news, None
                case News.NOTHING:
                    pass

    def _delivery(self, message: Msg) -> Delivery:
        return delivery_from(message, self._consumer, self._link, self._requests)

    # -- the inbox -----------------------------------------------------------------------------------------------------

    async def _ready(self) -> Inbox:
        """An inbox on the live connection, without an open request. Raises NatsUnavailable."""
        inbox = self._inbox
        if inbox is not None and inbox.is_lost:
            await self._withdraw([])  # nats-py has subscribed it again, and the server may still know its request
            inbox = None
        if inbox is None:
            inbox = Inbox(self._link)
            self._inbox = inbox
            await inbox.open()
        strays = inbox.rest()
        if strays:
            await self._give_back(_jobs(strays))
        return inbox

    async def _drained(self) -> list[Msg]:
        """Have the server drop all requests; returns the jobs that came all the same. Raises NatsUnavailable."""
        inbox = self._inbox
        if inbox is None:
            return []
        if inbox.is_of_this_client:
            await inbox.unsubscribe()
            await self._round_trip()
        self._inbox = None
        inbox.close()
        return _jobs(inbox.rest())

    async def _withdraw(self, came: list[Msg]) -> None:
        """End all requests and give back what came, also while we are being cancelled."""
        with anyio.move_on_after(WITHDRAW_SEC, shield=True):
            try:
                await self._give_back([*came, *await self._drained()])
            except NatsUnavailable as error:
                _log.debug("jobs that had come go to others after the ack wait: %s", error)
        if self._inbox is not None:
            self._inbox.close()
            self._inbox = None

    async def _give_back(self, jobs: list[Msg]) -> None:
        if not jobs:
            return
        self.strays += len(jobs)
        with translating():
            for job in jobs:
                await self._link.client().publish(job.reply, b"-NAK")
        await self._round_trip()

    async def _round_trip(self) -> None:
        """Return when the server has read all that we sent, and we have heard all that it sent before."""
        try:
            await self._requests.call(f"$JS.API.CONSUMER.INFO.{WORK_STREAM}.{self._consumer.name}")
        except Refused as error:  # an answer like any other
            _log.debug("consumer %s: %s", self._consumer.name, error)


def _jobs(messages: list[Msg]) -> list[Msg]:
    return [message for message in messages if message.reply]


def _news(inbox: Inbox, message: Msg, token: str) -> News:
    """Read a message of the server. Raises NatsUnavailable when it has ended the request for a reason of its own."""
    if message.reply:
        return News.JOB
    headers = message.headers or {}
    status, text = headers.get("Status"), headers.get("Description", "")
    if status == "100" or not inbox.is_about(message, token):
        return News.NOTHING
    if status in ("404", "408"):
        return News.NONE_NOW
    if status == "409" and ("MaxAckPending" in text or "MaxWaiting" in text):
        return News.FULL
    raise NatsUnavailable(f"the server ended the pull request: {status} {text}".rstrip())
