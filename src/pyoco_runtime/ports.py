"""What the actors need from the outside, as Protocols. jetstream/ and testing/ implement them."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from attrs import frozen

from pyoco_runtime.errors import PyocoError
from pyoco_runtime.model.api_key import ApiKeyRecord
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.house import ProcessReport
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.progress import Progress
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.settlement import Settlement
from pyoco_runtime.model.wheel_event import HistoryQuery, WheelEvent
from pyoco_runtime.model.wheels import WheelInfo, WheelShelf
from pyoco_runtime.model.worker import WorkerRecord

Clock = Callable[[], float]
"""Gives timestamps in unix seconds; durations come from anyio's clock."""


class LinkStatus(enum.Enum):
    """What the connection says about itself."""

    CONNECTED = "connected"
    LOST = "lost"
    """Down for now; it reconnects by itself."""
    CLOSED = "closed"
    """Down for good; a new one is needed."""


class Link(Protocol):
    """The one NATS connection, as everybody but its owner sees it. It outlives every life of the link actor."""

    @property
    def is_up(self) -> bool:
        """Connected, and all resources are there."""

    @property
    def problem(self) -> str:
        """Why it is not up, in words for the operator."""

    @property
    def epoch(self) -> int:
        """Counts connections: subscriptions made in one epoch are gone in the next."""

    async def wait_up(self) -> None:
        """Return as soon as it is up."""

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called when it goes up or down; call what is returned to end that."""


class LinkOwner(Protocol):
    """The same connection, as the link actor drives it."""

    async def connect(self) -> None:
        """Make one attempt to connect. Raises NatsUnavailable."""

    async def prepare(self) -> None:
        """Make the streams, buckets and the object store that are missing; change none. Raises NatsUnavailable."""

    async def next_status(self) -> LinkStatus:
        """Wait until the connection's status changes, and return it."""

    def declare_up(self) -> None:
        """Let everybody use it."""

    def declare_down(self, problem: str) -> None:
        """Let everybody fail fast with this reason."""

    async def close(self) -> None:
        """Close the connection, if there is one."""


class HouseView(Protocol):
    """All processes of ours on this NATS, as their consoles show them."""

    async def reports(self) -> list[ProcessReport]:
        """Their trees, by process; takes as long as nobody new answers. Raises NatsUnavailable."""

    async def restart(self, process: str, actor: str) -> str:
        """Have one process restart one actor; returns the actor's path. Raises NoSuchActor, NatsUnavailable."""

    def watching(self) -> AbstractAsyncContextManager[HouseWatch]:
        """Hear of changes while the block runs. Raises NatsUnavailable."""


class HouseWatch(Protocol):
    """Hints that the tree of a process has changed; that a process is gone nobody tells."""

    async def changed(self) -> None:
        """Return when something has changed since the last call. Raises NatsUnavailable when the watch is lost."""


class Desk(Protocol):
    """What the console shows and does: the tree of this process."""

    def report(self) -> ProcessReport:
        """The tree at this moment."""

    def resolve(self, actor: str) -> str:
        """The path of the actor with this path or this unique last part. Raises NoSuchActor."""

    def restart(self, path: str) -> None:
        """Begin to restart the actor with this path. Raises NoSuchActor, NotRunning."""


class ConsoleService(Protocol):
    """The console while it can be reached over NATS."""

    @property
    def epoch(self) -> int:
        """The link's epoch that it was opened in."""

    async def notify(self) -> None:
        """Tell whoever watches that the tree has changed. Raises NatsUnavailable."""


class ConsoleHost(Protocol):
    """Opens the console to the network."""

    def serving(self, desk: Desk) -> AbstractAsyncContextManager[ConsoleService]:
        """Answer requests for the desk while the block runs. Raises NatsUnavailable."""


# -- runs -------------------------------------------------------------------------------------------------------------


@frozen
class StoredRun:
    """A snapshot and the revision to compare with when it is written again."""

    snapshot: RunSnapshot
    revision: int


class RunStore(Protocol):
    """The snapshots. Every write is a compare-and-set; a write that fails with NatsUnavailable may have happened."""

    async def get(self, run_id: str) -> StoredRun | None:
        """The latest; None only if it is surely not there. Raises NatsUnavailable, Unreadable."""

    async def create(self, snapshot: RunSnapshot) -> int:
        """Store a new run; returns its revision. Raises RunExists, NatsUnavailable."""

    async def create_all(self, snapshots: Sequence[RunSnapshot]) -> list[int | PyocoError]:
        """Store many new runs with one wait; each has its revision or its error in its place."""

    async def update(self, snapshot: RunSnapshot, revision: int) -> int:
        """Store over exactly that revision; returns the new one. Raises RevisionConflict, NatsUnavailable."""

    async def remove(self, run_id: str, revision: int) -> None:
        """Delete it at exactly that revision. Raises RevisionConflict, NatsUnavailable."""

    def watching(self) -> AbstractAsyncContextManager[RunWatch]:
        """Hear of writes to chosen runs while the block runs. Raises NatsUnavailable."""

    def changes(self) -> AbstractAsyncContextManager[RunChanges]:
        """Hear of every run, first all that are stored, then every write. Raises NatsUnavailable."""


class RunWatch(Protocol):
    """Hints that a chosen run was written to, by whomever, and can be read; one hint may stand for many writes."""

    async def choose(self, run_ids: frozenset[str]) -> None:
        """From now on hear of exactly these. Raises NatsUnavailable."""

    async def next(self) -> str:
        """The id of a run that was written to. Raises NatsUnavailable when the watch is lost: open a new one."""


@frozen
class RunChanged:
    """A run as it was written."""

    stored: StoredRun


@frozen
class RunRemoved:
    """A run is gone."""

    run_id: str
    revision: int


@frozen
class CaughtUp:
    """All that was stored when the watch began has been told."""


RunChange = RunChanged | RunRemoved | CaughtUp


class RunChanges(Protocol):
    """The feed of all runs."""

    async def next(self) -> RunChange:
        """The next one; values that cannot be read are skipped. Raises NatsUnavailable when the feed is lost."""


# -- the work queue ---------------------------------------------------------------------------------------------------


class Delivery(Protocol):
    """One job in our hands until it is settled or the ack wait passes without a sign of life."""

    @property
    def job(self) -> Job | InvalidJob:
        """What was sent."""

    @property
    def attempt(self) -> Attempt:
        """The fencing token of this delivery."""

    @property
    def tag(self) -> str:
        """The tag of the consumer that it came through."""

    @property
    def subject(self) -> str:
        """The subject that it was published to."""

    @property
    def is_last(self) -> bool:
        """The server will not deliver it again, and has delivered it before."""

    @property
    def ack_wait_sec(self) -> float:
        """How long it stays ours without a sign of life."""

    async def in_progress(self) -> None:
        """A sign of life. Raises NatsUnavailable."""

    async def settle(self, settlement: Settlement) -> None:
        """Say what becomes of it, confirmed by the server. Raises NatsUnavailable."""


class Puller(Protocol):
    """Takes jobs of one tag, one call at a time."""

    async def take(self, limit: int) -> list[Delivery]:
        """At most `limit` that wait now, perhaps none. Cancelled, it gives back what came. Raises NatsUnavailable."""

    async def wait(self) -> Delivery:
        """The next job, whenever it comes. Cancelled, it gives back what came. Raises NatsUnavailable."""


class WorkQueue(Protocol):
    """The jobs."""

    async def publish(self, job: Job) -> int:
        """Put a job on the queue, once however often it is called; returns its sequence. Raises NatsUnavailable."""

    async def publish_all(self, jobs: Sequence[Job]) -> list[int | PyocoError]:
        """Put many jobs on the queue with one wait; each has its sequence or its error in its place."""

    def pulling(self, tag: str) -> AbstractAsyncContextManager[Puller]:
        """Pull jobs of this tag, making its consumer if it is missing. Raises NatsUnavailable."""


@frozen
class StuckJob:
    """A job that the server has delivered as often as it may, and will never deliver again."""

    seq: int
    tag: str
    subject: str
    job: Job | InvalidJob


class QueueInspector(Protocol):
    """Looks into the queue from outside, for the reconciler. Not on any path that a user waits for."""

    async def holds(self, seq: int) -> bool:
        """Whether the message with that sequence is still on the queue. Raises NatsUnavailable."""

    async def find(self, run_id: str, tag: str, submitted_at: float) -> int | None:
        """The sequence of the job of that run, published around that time, if it is there. Raises NatsUnavailable."""

    async def stuck(self) -> list[StuckJob]:
        """All jobs whose deliveries are used up. Raises NatsUnavailable."""

    async def discard(self, seq: int) -> None:
        """Take a message off the queue; one that is gone is fine. Raises NatsUnavailable."""


# -- the rest of a worker's world -------------------------------------------------------------------------------------


class WorkerRegistry(Protocol):
    """The worker records."""

    async def publish(self, record: WorkerRecord) -> None:
        """Store the record, keeping `hidden` and the fields that others added. Raises NatsUnavailable."""

    async def get(self, worker_id: str) -> WorkerRecord | None:
        """The latest; None if there is surely none, or none with such an id. Raises NatsUnavailable, Unreadable."""

    async def hide(self, worker_id: str, hidden: bool, at: float) -> WorkerRecord | None:
        """Set `hidden` and `updated_at` by compare-and-set; returns what is stored then, None if there is none.

        Raises NatsUnavailable, Unreadable.
        """

    def changes(self) -> AbstractAsyncContextManager[WorkerChanges]:
        """Hear of every worker, first all that are stored, then every write. Raises NatsUnavailable."""


@frozen
class WorkerChanged:
    """A record as it was written."""

    record: WorkerRecord
    revision: int


@frozen
class WorkerRemoved:
    """A record is gone. One that grows too old vanishes without this."""

    worker_id: str
    revision: int


WorkerChange = WorkerChanged | WorkerRemoved | CaughtUp


class WorkerChanges(Protocol):
    """The feed of all workers."""

    async def next(self) -> WorkerChange:
        """The next one; values that cannot be read are skipped. Raises NatsUnavailable when the feed is lost."""


@frozen
class StoredLetter:
    """A dead letter and its place in the stream, which is its id."""

    seq: int
    letter: DeadLetter


class DeadLetters(Protocol):
    """The dead letters."""

    async def publish(self, letter: DeadLetter) -> None:
        """Store a letter. Raises NatsUnavailable."""

    async def get(self, seq: int) -> StoredLetter | None:
        """The letter of that number; None if there is surely none (any more). Raises NatsUnavailable, Unreadable."""

    async def drop(self, seq: int) -> bool:
        """Remove it; whether it was there. Raises NatsUnavailable."""

    async def count(self) -> int:
        """How many there are. Raises NatsUnavailable."""

    def changes(self) -> AbstractAsyncContextManager[LetterChanges]:
        """Hear of every letter, first all that are stored, oldest first, then every new one. Raises NatsUnavailable."""


LetterChange = StoredLetter | CaughtUp


class LetterChanges(Protocol):
    """The feed of all dead letters. Nobody says when one is removed or grows too old."""

    async def next(self) -> LetterChange:
        """The next one; values that cannot be read are skipped. Raises NatsUnavailable when the feed is lost."""


@frozen
class TagDepth:
    """What waits on the queue under one tag."""

    tag: str
    waiting: int
    """Jobs that nobody has taken."""
    in_hand: int
    """Jobs that a worker has, or that wait to be delivered again."""
    oldest_waiting_at: float | None
    """When the oldest of those that wait was published; a timestamp."""


class QueueGauge(Protocol):
    """How full the queue is."""

    async def read(self) -> tuple[TagDepth, ...]:
        """Every tag that has a consumer or a job; costs a round trip or two for each. Raises NatsUnavailable."""


@frozen
class Promise:
    """What was answered, or is being answered, to a request with an idempotency key."""

    run_id: str
    body_sha256: str
    created_at: float


class PromiseStore(Protocol):
    """The idempotency keys of the last 24 hours."""

    async def claim(self, key: str, promise: Promise) -> Promise:
        """Store it if the key is new; returns what is stored under the key then. Raises NatsUnavailable.

        `key` may be any text; the caller has put the tenant into it.
        """

    async def release(self, key: str, promise: Promise) -> None:
        """Forget the key if this promise is stored under it: it was not kept. Raises NatsUnavailable."""


class WheelStore(Protocol):
    """The wheels that workers install."""

    async def list(self) -> list[WheelInfo]:
        """All that are there. Raises NatsUnavailable."""

    async def download(self, name: str, to: Path) -> None:
        """Write one to a file, checked against its digest. Raises NatsUnavailable, WheelGone."""

    def watching(self) -> AbstractAsyncContextManager[WheelWatch]:
        """Hear of changes while the block runs. Raises NatsUnavailable."""


class WheelRegistry(WheelStore, Protocol):
    """The same wheels, for the gateway: it takes, gives and deletes them."""

    async def look(self) -> WheelShelf:
        """All that are there, and the revision that goes with them. Raises NatsUnavailable."""

    async def open(self, name: str) -> WheelReading:
        """Find one in order to read it. Raises WheelGone, NatsUnavailable."""

    def uploading(self) -> AbstractAsyncContextManager[WheelUpload]:
        """Take the bytes of a new one; what is not committed when the block ends is thrown away.

        After a commit that may have happened the bytes stay, for `sweep` to decide. Raises NatsUnavailable.
        """

    async def delete(self, name: str) -> WheelInfo:
        """Take one out and tell what it was. Raises WheelGone, NatsUnavailable."""

    async def sweep(self) -> int:
        """Throw away the bytes that no wheel has and nobody has added to for long; returns of how many uploads.

        They are left by a process that was killed, or by a connection that was lost before it could clean up.
        Raises NatsUnavailable.
        """


class WheelReading(Protocol):
    """A wheel that can be read."""

    @property
    def info(self) -> WheelInfo:
        """What it is."""

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Its bytes in pieces. The last piece comes only if the digest is right.

        Raises WheelGone if it is replaced meanwhile, Unreadable if the digest is wrong, NatsUnavailable.
        """


@frozen(kw_only=True)
class WheelLabel:
    """What is stored with the bytes of a wheel."""

    name: str
    tags: tuple[str, ...] = ()
    content_type: str = "application/octet-stream"


class WheelUpload(Protocol):
    """A wheel on its way into the store; nobody sees it before it is committed."""

    @property
    def nuid(self) -> str:
        """What it will be known by."""

    async def write(self, data: bytes) -> None:
        """Add bytes, of any number; at most one chunk of them stays in memory. Raises NatsUnavailable."""

    async def commit(self, label: WheelLabel, revision: int) -> WheelInfo:
        """Make it visible, in place of one of that name, if the shelf still has that revision.

        Raises RevisionConflict: look again, decide, and commit again. Raises NatsUnavailable, and then it may have
        happened: look whether the shelf has a wheel with this nuid, and else commit again.
        """


class WheelHistory(Protocol):
    """Who has uploaded and deleted wheels."""

    async def append(self, event: WheelEvent) -> None:
        """Add one; to add it again changes nothing. Raises NatsUnavailable."""

    async def recent(self, query: HistoryQuery) -> list[WheelEvent]:
        """The newest that are wanted, newest first. Raises NatsUnavailable."""


class WheelWatch(Protocol):
    """Hints that the wheels have changed."""

    async def changed(self) -> None:
        """Return when something has changed since the last call. Raises NatsUnavailable when the watch is lost."""


class Execution(Protocol):
    """A flow that is being executed."""

    def cancel(self) -> None:
        """Ask it to stop; it may take its time, or not listen."""

    def kill(self) -> None:
        """End it by force; a FlowEnded with Killed is reported unless it has ended by itself."""


class FlowRunner(Protocol):
    """Executes flows."""

    async def begin(self, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> Execution:
        """Wait for a free place, and begin. `report` is called in this event loop, FlowEnded last and exactly once.

        Cancelled, it has begun nothing. Raises RunnerUnavailable.
        """


# -- API keys ---------------------------------------------------------------------------------------------------------


@frozen
class StoredKey:
    """The record of an API key, and its revision."""

    record: ApiKeyRecord
    revision: int


class KeyStore(Protocol):
    """The records of the API keys; the keys themselves are stored nowhere."""

    async def get(self, key_id: str) -> StoredKey | None:
        """The latest that was acknowledged to anybody; None only if there is surely none.

        Raises NatsUnavailable, Unreadable.
        """

    async def create(self, record: ApiKeyRecord) -> int:
        """Store a new one; returns its revision. Raises RevisionConflict if its id is taken, NatsUnavailable."""

    async def revoke(self, key_id: str, at: float) -> StoredKey | None:
        """Revoke it by compare-and-set; returns what is stored then, with the time of the first revocation.

        None if there is none. Raises NatsUnavailable, Unreadable.
        """

    async def list(self) -> list[StoredKey]:
        """All that can be read, the newest first. Raises NatsUnavailable."""

    def changes(self) -> AbstractAsyncContextManager[KeyChanges]:
        """Hear of every key, first all that are stored, then every write. Raises NatsUnavailable."""


@frozen
class KeyChanged:
    """A record as it was written."""

    stored: StoredKey


@frozen
class KeyRemoved:
    """A record is gone, or what is in its place cannot be read."""

    key_id: str
    revision: int


KeyChange = KeyChanged | KeyRemoved | CaughtUp


class KeyChanges(Protocol):
    """The feed of all API keys."""

    async def next(self) -> KeyChange:
        """The next one. Raises NatsUnavailable when the feed is lost."""
