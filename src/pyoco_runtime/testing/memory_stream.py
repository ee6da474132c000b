"""The work queue's stream in memory: messages by sequence, one consumer a tag, duplicates recognised for a while."""

from __future__ import annotations

from typing import assert_never

import anyio

from pyoco_runtime.model.job import Job
from pyoco_runtime.model.settlement import Ack, Nak, Settlement, Term
from pyoco_runtime.model.wire import job_from
from pyoco_runtime.ports import Clock
from pyoco_runtime.testing.memory_consumer import ConsumerSettings, Handed, MemoryConsumer, Message
from pyoco_runtime.testing.memory_log import JobDelivered, JobDiscarded, JobPublished, JobSettled, MemoryLog

DUPLICATE_WINDOW_SEC = 120.0  # the server's default


class MemoryStream:
    """Work queue retention: an ack or a term takes the message off. Durations are of anyio's clock."""

    def __init__(self, subject_prefix: str, clock: Clock, log: MemoryLog) -> None:
        self.messages: dict[int, Message] = {}
        self._prefix = subject_prefix
        self._clock = clock
        self._log = log
        self._last_seq = 0
        self._seen: dict[str, tuple[int, float]] = {}
        self._consumers: dict[str, MemoryConsumer] = {}

    def publish(self, tag: str, data: bytes, message_id: str | None, by: str) -> int:
        """Store a message unless one with its id came lately; returns its sequence."""
        copy_of = self._copy_of(message_id)
        seq = copy_of if copy_of is not None else self._store(tag, data, message_id)
        run_id = _run_id(data)
        self._log.add(
            JobPublished(at=self._clock(), by=by, seq=seq, tag=tag, run_id=run_id, is_copy=copy_of is not None)
        )
        if copy_of is None and tag in self._consumers:
            self._consumers[tag].add(seq, anyio.current_time())
        return seq

    def consumer(self, tag: str, settings: ConsumerSettings) -> MemoryConsumer:
        """The consumer of this tag; one that exists keeps its settings."""
        if tag not in self._consumers:
            made = self._consumers[tag] = MemoryConsumer(settings, self.messages, self._delivered)
            for message in list(self.messages.values()):
                if message.tag == tag:
                    made.add(message.seq, anyio.current_time())
        return self._consumers[tag]

    def settle(self, handed: Handed, settlement: Settlement, by: str) -> None:
        """Take a settlement from whoever sends it: there is no fencing."""
        seq, tag = handed.message.seq, handed.message.tag
        is_late = seq not in self.messages or self._consumers[tag].delivery_of(seq) != handed.delivery
        self._log.add(
            JobSettled(
                at=self._clock(),
                by=by,
                seq=seq,
                delivery=handed.delivery,
                settlement=settlement,
                run_id=_run_id(handed.message.data),
                is_late=is_late,
            )
        )
        match settlement:
            case Ack() | Term():
                self._remove(seq)
            case Nak(delay_sec):
                self._consumers[tag].give_back(seq, delay_sec, anyio.current_time())
            case _:
                assert_never(settlement)

    def progress(self, handed: Handed) -> None:
        """Take a sign of life from whoever sends it."""
        self._consumers[handed.message.tag].progress(handed.message.seq, anyio.current_time())

    def discard(self, seq: int, by: str) -> None:
        """Take a message off the queue from outside."""
        if seq in self.messages:
            self._log.add(JobDiscarded(at=self._clock(), by=by, seq=seq))
            self._remove(seq)

    def stuck(self) -> list[Message]:
        """All messages whose deliveries are used up, tag by tag."""
        now = anyio.current_time()
        return [self.messages[seq] for tag in sorted(self._consumers) for seq in self._consumers[tag].stuck(now)]

    def tags(self) -> list[str]:
        """Every tag that has a consumer or a message, by name."""
        return sorted({*self._consumers, *(message.tag for message in self.messages.values())})

    def waiting(self, tag: str) -> list[Message]:
        """The messages of a tag that nobody has taken, oldest first."""
        if tag in self._consumers:
            return [self.messages[seq] for seq in self._consumers[tag].waiting()]
        return [message for message in self.messages.values() if message.tag == tag]

    def in_hand(self, tag: str) -> int:
        """How many messages of a tag somebody has, or that wait to be delivered again."""
        return self._consumers[tag].in_hand(anyio.current_time()) if tag in self._consumers else 0

    def redeliver_now(self, seq: int) -> None:
        """Behave as if the ack wait of this message had passed."""
        message = self.messages.get(seq)
        if message is not None and message.tag in self._consumers:
            self._consumers[message.tag].redeliver_now(seq, anyio.current_time())

    def forget_copies(self) -> None:
        """After a restart the ids of messages that are gone are forgotten."""
        self._seen = {name: seen for name, seen in self._seen.items() if seen[0] in self.messages}

    def _copy_of(self, message_id: str | None) -> int | None:
        seq, at = self._seen.get(message_id or "", (0, 0.0))
        return seq if seq and anyio.current_time() - at < DUPLICATE_WINDOW_SEC else None

    def _store(self, tag: str, data: bytes, message_id: str | None) -> int:
        self._last_seq += 1
        seq = self._last_seq
        if message_id:
            self._seen[message_id] = (seq, anyio.current_time())
        self.messages[seq] = Message(seq, tag, f"{self._prefix}.{tag}", data, self._clock())
        return seq

    def _remove(self, seq: int) -> None:
        message = self.messages.pop(seq, None)
        if message is not None and message.tag in self._consumers:
            self._consumers[message.tag].forget(seq, anyio.current_time())

    def _delivered(self, handed: Handed, to: str) -> None:
        self._log.add(JobDelivered(at=self._clock(), to=to, seq=handed.message.seq, delivery=handed.delivery))


def _run_id(data: bytes) -> str | None:
    job = job_from(data)
    return job.run_id if isinstance(job, Job) else None
