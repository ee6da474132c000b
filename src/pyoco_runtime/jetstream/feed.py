"""All messages under a subject of a stream, one after the other."""

from __future__ import annotations

import enum
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from attrs import frozen
from nats.aio.msg import Msg

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.ack_subject import AckSubject
from pyoco_runtime.jetstream.inbox import Inbox
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests

_log = logging.getLogger(__name__)

BATCH = 128  # messages in memory at most; a round trip for so many is lost in the noise
EXPIRES_SEC = 30.0
HEARTBEAT_SEC = 5.0
DEAF_SEC = 2 * HEARTBEAT_SEC + 1  # two missed heartbeats
INACTIVE_SEC = 60.0  # the server removes the consumer of a process that was killed
SEC = 1_000_000_000

_PULL = f'{{"batch":{BATCH},"expires":{int(EXPIRES_SEC * SEC)},"idle_heartbeat":{int(HEARTBEAT_SEC * SEC)}}}'.encode()


class Deliver(enum.StrEnum):
    """Where a feed begins."""

    ALL = "all"
    LAST_PER_SUBJECT = "last_per_subject"


@frozen
class FeedMessage:
    """One stored message."""

    subject: str
    data: bytes
    headers: Mapping[str, str] | None
    seq: int


class Feed:
    """First what is stored, then what comes. Ends with NatsUnavailable as soon as anything may have been missed.

    An ordered consumer that is pulled: it acknowledges nothing, a gap in its sequence ends it, and no more than a batch
    is in memory, because the next one is asked for when the last is read. nats-py's watch is pushed, buffers up to
    128 MB, takes more than twice the time and is silently blind after a server restart.
    """

    def __init__(self, inbox: Inbox, requests: Requests, stream: str, consumer: Mapping[str, Any]) -> None:
        self._inbox = inbox
        self._rpc = requests
        self._info_subject = f"$JS.API.CONSUMER.INFO.{stream}.{consumer['name']}"
        self._next_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer['name']}"
        self._open = 0
        self._consumer_seq = 0
        self._requests = 0
        self.is_caught_up = int(consumer.get("num_pending", 0)) == 0
        """All that was stored has been read."""

    async def next(self) -> FeedMessage | None:
        """The next message; None when `is_caught_up` has come true without one. Raises NatsUnavailable when lost."""
        while True:
            if not self._open:
                self._open = BATCH
                self._requests += 1
                await self._inbox.send(self._next_subject, _PULL, str(self._requests))
            message = await self._inbox.next(DEAF_SEC)
            if message is None:
                raise NatsUnavailable("the feed has fallen silent")
            if message.reply.startswith("$JS.ACK."):
                return self._read(message)
            if self._note(message) and not self.is_caught_up:
                # what was stored last may have been removed since: then no message says that it was the last one
                self.is_caught_up = int((await self._rpc.call(self._info_subject)).get("num_pending", 0)) == 0
                if self.is_caught_up:
                    return None

    def _read(self, message: Msg) -> FeedMessage:
        meta = AckSubject.parse(message.reply)
        if meta.consumer_seq != self._consumer_seq + 1:
            raise NatsUnavailable("the feed has a gap")
        self._consumer_seq += 1
        self._open -= 1
        self.is_caught_up = self.is_caught_up or meta.pending == 0
        return FeedMessage(message.subject, message.data, message.headers, meta.stream_seq)

    def _note(self, message: Msg) -> bool:
        """Take in what the server says beside the messages; whether it says that there are none just now."""
        if not self._inbox.is_about(message, str(self._requests)):
            return False
        headers = message.headers or {}
        match headers.get("Status"):
            case "100":  # a heartbeat
                return True
            case "404" | "408":  # the request has expired
                self._open = 0
                return True
            case status:
                raise NatsUnavailable(f"the feed has ended: {status} {headers.get('Description', '')}".rstrip())


@asynccontextmanager
async def feeding(
    link: NatsLink, requests: Requests, stream: str, subject: str, deliver: Deliver
) -> AsyncIterator[Feed]:
    """Read a stream while the block runs. Raises NatsUnavailable."""
    config = {
        "deliver_policy": deliver.value,
        "ack_policy": "none",
        "filter_subject": subject,
        "replay_policy": "instant",
        "inactive_threshold": int(INACTIVE_SEC * SEC),
        "mem_storage": True,
        "num_replicas": 1,
    }
    inbox = Inbox(link)
    name = ""
    try:
        await inbox.open()
        consumer = await requests.call(f"$JS.API.CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config})
        name = consumer["name"]
        yield Feed(inbox, requests, stream, consumer)
    finally:
        await _leave(link, requests, inbox, f"$JS.API.CONSUMER.DELETE.{stream}.{name}" if name else "")


async def _leave(link: NatsLink, requests: Requests, inbox: Inbox, delete: str) -> None:
    try:
        with anyio.move_on_after(1, shield=True):
            await inbox.unsubscribe()
            if delete and link.is_up:
                await requests.call(delete)
    except NatsUnavailable as error:
        _log.debug("a feed ended while the connection was down: %s", error)
    finally:
        inbox.close()
