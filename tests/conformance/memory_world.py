"""The world in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.model.dead_letter import DeadLetter
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
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.memory_process import MemoryProcess
from tests.conformance.world import Consumer, Process, World


class _Process:
    """A simulated process with the verbs of the suite."""

    def __init__(self, process: MemoryProcess) -> None:
        self._process = process
        self.run_store: RunStore = process.run_store
        self.work_queue: WorkQueue = process.work_queue
        self.inspector: QueueInspector = process.inspector
        self.registry: WorkerRegistry = process.registry
        self.dead_letters: DeadLetters = process.dead_letters
        self.gauge: QueueGauge = process.gauge
        self.promises: PromiseStore = process.promises
        self.keys: KeyStore = process.keys
        self.wheels: WheelRegistry = process.wheels
        self.wheel_history: WheelHistory = process.wheel_history

    async def disconnect(self) -> None:
        self._process.disconnect()

    async def reconnect(self) -> None:
        self._process.reconnect()


class MemoryWorld(World):
    """Everything in one object, in virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self._server = MemoryJetStream(max_snapshot_bytes=self.max_snapshot_bytes)
        self._processes = 0

    def now(self) -> float:
        return virtual_clock()

    @asynccontextmanager
    async def process(self, consumer: Consumer = Consumer()) -> AsyncIterator[Process]:  # noqa: B008 (frozen)
        self._processes += 1
        settings = ConsumerSettings(consumer.ack_wait_sec, consumer.max_deliver, consumer.max_ack_pending)
        yield _Process(self._server.process(f"process-{self._processes}", consumer=settings))

    async def send(self, tag: str, data: bytes) -> int:
        return self._server.send(tag, data)

    async def write_run(self, run_id: str, data: bytes) -> int:
        return self._server.write_run(run_id, data)

    async def write_worker(self, worker_id: str, data: bytes) -> None:
        self._server.workers.write(worker_id, data, None)

    async def worker(self, worker_id: str) -> WorkerRecord:
        found = self._server.worker(worker_id)
        assert found is not None
        return found

    async def letters(self, tag: str) -> list[DeadLetter]:
        return [stored.letter for stored in self._server.letters.letters() if stored.letter.tag == tag]

    async def remove_worker(self, worker_id: str) -> None:
        self._server.workers.write(worker_id, None, None)

    async def write_key(self, key_id: str, data: bytes | None) -> None:
        self._server.keys.write(key_id, data, None)

    async def write_letter(self, tag: str, data: bytes) -> int:
        return self._server.write_letter(data)

    async def upload(self, name: str, data: bytes, tags: tuple[str, ...]) -> None:
        self._server.shelf.upload(name, data, tags)

    async def delete_wheel(self, name: str) -> None:
        self._server.shelf.delete(name)

    async def read_wheel(self, name: str) -> bytes:
        return self._server.shelf.read(self._server.shelf.info(name).nuid)

    async def wheel_chunks(self, nuid: str) -> int:
        return len(self._server.shelf.read(nuid))
