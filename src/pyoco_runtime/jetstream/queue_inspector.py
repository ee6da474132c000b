"""Looks into the work stream from outside."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import anyio
from attrs import frozen
from nats.aio.client import Client
from nats.aio.msg import Msg

from pyoco_runtime.jetstream.bucket import headers_from
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Refused, Requests
from pyoco_runtime.jetstream.resources import WORK_STREAM
from pyoco_runtime.jetstream.tap import tap
from pyoco_runtime.jetstream.translate import translating
from pyoco_runtime.model.wire import job_from
from pyoco_runtime.ports import StuckJob

NOT_FOUND = frozenset({10037, 10043})  # in the words of get and of delete
DELETE_FAILED = 10057  # among others for a sequence beyond the last
EARLY_SEC, LATE_SEC = 5.0, 120.0  # clocks differ; a publish may be tried for a while
LIKELY_SEC = 0.2  # most jobs are published so soon; looked at first
SECOND_LOOK_SEC = 1.0  # an acked message leaves a replicated stream a moment after its pending ack
REMEMBERED = 10_000  # advisories
_ADVISORY = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{WORK_STREAM}.*"


@frozen
class QueuedMessage:
    """A message in the work stream."""

    seq: int
    subject: str
    time: float
    msg_id: str | None
    data: bytes


@frozen
class ConsumerState:
    """What a consumer says about itself."""

    name: str
    subject: str
    created: str
    max_deliver: int
    delivered: int
    """The highest sequence that was ever delivered."""
    ack_floor: int
    """All up to this sequence are settled, or given up."""
    ack_pending: int
    pending: int

    def has_given_up(self, seq: int) -> bool:
        """Whether a message that is still there will surely not be delivered again."""
        return seq <= self.ack_floor or (self.ack_pending == 0 and seq <= self.delivered)


class NatsQueueInspector:
    """Implements ports.QueueInspector.

    The server does not list what waits for an ack. So a job is called stuck when its consumer has no pending acks at
    all, or has an ack floor above it, or when the server's advisory named it while this inspector listened. In a queue
    that is never empty of pending acks one may so stay unseen, until there is such a moment; none is called stuck that
    is not.
    """

    def __init__(self, link: NatsLink, subject_prefix: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._prefix = subject_prefix
        self._listener: Client | None = None
        self._named: dict[tuple[str, int], None] = {}
        """Consumer and sequence of the jobs that the server has given up."""
        self._lives: dict[str, str] = {}
        """When each consumer was made: one that was made anew delivers everything again."""

    async def holds(self, seq: int) -> bool:
        return seq > 0 and await self._get({"seq": seq}) is not None

    async def discard(self, seq: int) -> None:
        try:
            await self._requests.call(f"$JS.API.STREAM.MSG.DELETE.{WORK_STREAM}", {"seq": seq, "no_erase": True})
        except Refused as error:
            if error.err_code not in NOT_FOUND and (error.err_code != DELETE_FAILED or await self.holds(seq)):
                raise

    async def find(self, run_id: str, tag: str, submitted_at: float) -> int | None:
        subject = f"{self._prefix}.{tag}"
        likely = await self._first_since(subject, submitted_at - LIKELY_SEC)
        found = await self._scan(run_id, subject, likely, submitted_at + LATE_SEC)
        if found is not None:
            return found
        early = await self._first_since(subject, submitted_at - EARLY_SEC)
        return await self._scan(run_id, subject, early, submitted_at - LIKELY_SEC)

    async def stuck(self) -> list[StuckJob]:
        await self._listen()
        counts = await self._counts()
        found: list[StuckJob] = []
        for consumer in await self._consumers():
            count = counts.get(consumer.subject, 0)
            self._note_life(consumer)
            if consumer.max_deliver > 0 and count - consumer.pending - consumer.ack_pending > 0:
                found += await self._given_up(consumer)
        if not found:
            return []
        await anyio.sleep(SECOND_LOOK_SEC)
        return [job for job in found if await self.holds(job.seq)]

    # -- looking -------------------------------------------------------------------------------------------------------

    async def _given_up(self, consumer: ConsumerState) -> list[StuckJob]:
        return [
            StuckJob(message.seq, message.subject.rpartition(".")[2], message.subject, job_from(message.data))
            async for message in self._messages(consumer.subject, 1, consumer.delivered)
            if consumer.has_given_up(message.seq) or (consumer.name, message.seq) in self._named
        ]

    async def _first_since(self, subject: str, time: float) -> int:
        """The lowest sequence from which on all messages of the subject are not older; they are in order of time."""
        state = (await self._requests.call(f"$JS.API.STREAM.INFO.{WORK_STREAM}"))["state"]
        low, high = state["first_seq"], state["last_seq"] + 1
        while low < high:
            middle = (low + high) // 2
            message = await self._get({"seq": middle, "next_by_subj": subject})
            if message is None or message.time >= time:
                high = middle
            else:
                low = message.seq + 1
        return int(low)

    async def _scan(self, run_id: str, subject: str, begin: int, until: float) -> int | None:
        async for message in self._messages(subject, begin):
            if message.time > until:
                return None
            if message.msg_id == run_id or job_from(message.data).run_id == run_id:
                return message.seq
        return None

    async def _messages(self, subject: str, begin: int, end: int | None = None) -> AsyncIterator[QueuedMessage]:
        message = await self._get({"seq": begin, "next_by_subj": subject})
        while message is not None and (end is None or message.seq <= end):
            yield message
            message = await self._get({"seq": message.seq + 1, "next_by_subj": subject})

    async def _get(self, which: dict[str, Any]) -> QueuedMessage | None:
        try:
            answer = await self._requests.call(f"$JS.API.STREAM.MSG.GET.{WORK_STREAM}", which)
        except Refused as error:
            if error.err_code in NOT_FOUND:
                return None
            raise
        return _message(answer["message"])

    async def _counts(self) -> dict[str, int]:
        body = {"subjects_filter": f"{self._prefix}.>"}
        state = (await self._requests.call(f"$JS.API.STREAM.INFO.{WORK_STREAM}", body))["state"]
        return dict(state.get("subjects") or {})

    async def _consumers(self) -> list[ConsumerState]:
        found: list[ConsumerState] = []
        while True:
            page = await self._requests.call(f"$JS.API.CONSUMER.LIST.{WORK_STREAM}", {"offset": len(found)})
            found += [_state(each) for each in page["consumers"] or []]
            if not page["consumers"] or len(found) >= page["total"]:
                return found

    # -- listening -----------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Remember what the server gives up from now on; nats-py subscribes again when the connection is cut."""
        client = self._link.client()
        if client is not self._listener:
            with translating():
                await tap(client, _ADVISORY, self._hear)
            self._listener = client

    def _hear(self, message: Msg) -> None:
        try:
            found = json.loads(message.data)
            self._named[str(found["consumer"]), int(found["stream_seq"])] = None
        except (ValueError, KeyError, TypeError):
            return  # not from a server
        if len(self._named) > REMEMBERED:
            del self._named[next(iter(self._named))]

    def _note_life(self, consumer: ConsumerState) -> None:
        if self._lives.setdefault(consumer.name, consumer.created) != consumer.created:
            self._lives[consumer.name] = consumer.created
            self._named = {key: None for key in self._named if key[0] != consumer.name}


def _message(found: dict[str, Any]) -> QueuedMessage:
    return QueuedMessage(
        seq=found["seq"],
        subject=found["subject"],
        time=datetime.fromisoformat(found["time"]).timestamp(),
        msg_id=headers_from(base64.b64decode(found.get("hdrs", ""))).get("Nats-Msg-Id"),
        data=base64.b64decode(found.get("data", "")),
    )


def _state(found: dict[str, Any]) -> ConsumerState:
    config = found["config"]
    return ConsumerState(
        name=found["name"],
        subject=config.get("filter_subject", ""),
        created=found["created"],
        max_deliver=config.get("max_deliver", -1),
        delivered=found["delivered"]["stream_seq"],
        ack_floor=found["ack_floor"]["stream_seq"],
        ack_pending=found["num_ack_pending"],
        pending=found["num_pending"],
    )
