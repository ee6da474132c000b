"""What every conformance test gets: the ports of as many processes as it likes, and the means of everybody else."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio
from attrs import frozen

from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.ports import (
    DeadLetters,
    KeyStore,
    PromiseStore,
    QueueGauge,
    QueueInspector,
    RunStore,
    WheelHistory,
    WheelRegistry,
    WorkerRegistry,
    WorkQueue,
)

SUBMITTED_AT = 1_800_000_000.0


@frozen
class Consumer:
    """How a process makes consumers that are missing."""

    ack_wait_sec: float = 30.0
    max_deliver: int = 20
    max_ack_pending: int = 200


class Process(Protocol):
    """The ports of one process on its own connection."""

    run_store: RunStore
    work_queue: WorkQueue
    inspector: QueueInspector
    registry: WorkerRegistry
    dead_letters: DeadLetters
    gauge: QueueGauge
    promises: PromiseStore
    keys: KeyStore
    wheels: WheelRegistry
    wheel_history: WheelHistory

    async def disconnect(self) -> None:
        """Lose the connection."""

    async def reconnect(self) -> None:
        """Be connected again."""


class World(ABC):
    """One server, shared with other tests: names are unique for each test."""

    max_snapshot_bytes = 4096

    def __init__(self) -> None:
        self.tag = f"tag-{uuid.uuid4().hex[:12]}"

    def run_id(self) -> str:
        """An id that nobody has used."""
        return str(uuid.uuid4())

    def now(self) -> float:
        """The time that messages are stamped with."""
        return SUBMITTED_AT

    def job(self, run_id: str | None = None, tag: str | None = None) -> Job:
        """A job of this test."""
        return Job(
            run_id=run_id or self.run_id(),
            flow_name="flow",
            tag=tag or self.tag,
            submitted_at=self.now(),
            params={"n": 1, "text": "日本語"},
            tags=("a", "b"),
        )

    def run(self, run_id: str | None = None, status: RunStatus = RunStatus.PENDING) -> RunSnapshot:
        """A snapshot of this test."""
        return RunSnapshot(run_id=run_id or self.run_id(), flow_name="flow", status=status, tag=self.tag)

    @abstractmethod
    def process(self, consumer: Consumer = Consumer()) -> AbstractAsyncContextManager[Process]:
        """A connected process while the block runs."""

    @abstractmethod
    async def send(self, tag: str, data: bytes) -> int:
        """Put any bytes on the work queue; returns the sequence."""

    @abstractmethod
    async def write_run(self, run_id: str, data: bytes) -> int:
        """Write any bytes as a run, whatever is there; returns the revision."""

    @abstractmethod
    async def write_worker(self, worker_id: str, data: bytes) -> None:
        """Write any bytes as a worker record."""

    @abstractmethod
    async def worker(self, worker_id: str) -> WorkerRecord:
        """The worker record that is stored."""

    @abstractmethod
    async def letters(self, tag: str) -> list[DeadLetter]:
        """The dead letters of a tag, oldest first."""

    @abstractmethod
    async def remove_worker(self, worker_id: str) -> None:
        """Delete a worker record, as a person does."""

    @abstractmethod
    async def write_key(self, key_id: str, data: bytes | None) -> None:
        """Write any bytes as the record of an API key, or delete it."""

    @abstractmethod
    async def write_letter(self, tag: str, data: bytes) -> int:
        """Put any bytes among the dead letters; returns the sequence."""

    @abstractmethod
    async def upload(self, name: str, data: bytes, tags: tuple[str, ...]) -> None:
        """Put a wheel into the store, as the gateway does."""

    @abstractmethod
    async def delete_wheel(self, name: str) -> None:
        """Take a wheel out of the store."""

    @abstractmethod
    async def read_wheel(self, name: str) -> bytes:
        """Read a wheel, as any client of the store does."""

    @abstractmethod
    async def wheel_chunks(self, nuid: str) -> int:
        """How many bytes the store has of that upload, whether a wheel has them or not."""


async def eventually(check: Callable[[], Awaitable[bool]], within_sec: float = 10.0) -> None:
    """Ask until it is so; for what the ports have no event for."""
    with anyio.fail_after(within_sec):
        while not await check():  # noqa: ASYNC110 (the server tells nobody)
            await anyio.sleep(0.02)
