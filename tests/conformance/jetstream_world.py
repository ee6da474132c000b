"""The world on a real nats-server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import nats
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ObjectMeta
from nats.js.errors import NotFoundError

from pyoco_runtime.jetstream.dead_letters import NatsDeadLetters
from pyoco_runtime.jetstream.key_store import NatsKeyStore
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.promise_store import NatsPromiseStore
from pyoco_runtime.jetstream.queue_gauge import NatsQueueGauge
from pyoco_runtime.jetstream.queue_inspector import NatsQueueInspector
from pyoco_runtime.jetstream.resources import make_missing
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.jetstream.wheel_history import NatsWheelHistory
from pyoco_runtime.jetstream.wheel_store import NatsWheelStore
from pyoco_runtime.jetstream.work_queue import ConsumerSettings, NatsWorkQueue
from pyoco_runtime.jetstream.worker_registry import NatsWorkerRegistry
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.wire import letter_from, worker_from
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
from tests.conformance.world import Consumer, Process, World
from tests.names import NAMES


class _Process:
    """One connection and the ports on it."""

    def __init__(self, link: NatsLink, consumer: Consumer, max_snapshot_bytes: int) -> None:
        settings = ConsumerSettings(
            ack_wait_sec=consumer.ack_wait_sec,
            max_deliver=consumer.max_deliver,
            max_ack_pending=consumer.max_ack_pending,
        )
        self._link = link
        self.run_store: RunStore = NatsRunStore(link, NAMES.runs_bucket, max_snapshot_bytes)
        self.work_queue: WorkQueue = NatsWorkQueue(link, NAMES.work_subject_prefix, settings)
        self.inspector: QueueInspector = NatsQueueInspector(link, NAMES.work_subject_prefix)
        self.registry: WorkerRegistry = NatsWorkerRegistry(link, NAMES.workers_bucket)
        self.dead_letters: DeadLetters = NatsDeadLetters(link, NAMES.dlq_subject_prefix, NAMES.dlq_stream)
        self.gauge: QueueGauge = NatsQueueGauge(link, NAMES.work_subject_prefix)
        self.promises: PromiseStore = NatsPromiseStore(link, NAMES.promises_bucket)
        self.keys: KeyStore = NatsKeyStore(link, NAMES.auth_bucket)
        self.wheels: WheelRegistry = NatsWheelStore(link, NAMES.wheels_bucket)
        self.wheel_history: WheelHistory = NatsWheelHistory(link, NAMES.wheel_history_bucket)

    async def reconnect(self) -> None:
        await self._link.connect()
        await self._link.prepare()
        self._link.declare_up()

    async def disconnect(self) -> None:
        self._link.declare_down("cut by the test")
        await self._link.close()


class JetStreamWorld(World):
    """A client of its own plays everybody else."""

    def __init__(self, url: str, client: Client) -> None:
        super().__init__()
        self._url = url
        self._client = client
        self._js: JetStreamContext = client.jetstream()

    def now(self) -> float:
        return time.time()

    @asynccontextmanager
    async def process(self, consumer: Consumer = Consumer()) -> AsyncIterator[Process]:  # noqa: B008 (frozen)
        made = _Process(NatsLink(lambda: (self._url,), "conformance", NAMES), consumer, self.max_snapshot_bytes)
        await made.reconnect()
        try:
            yield made
        finally:
            with anyio.CancelScope(shield=True):
                await made.disconnect()

    async def send(self, tag: str, data: bytes) -> int:
        return (await self._js.publish(f"pyoco.work.{tag}", data)).seq

    async def write_run(self, run_id: str, data: bytes) -> int:
        return await (await self._js.key_value(NAMES.runs_bucket)).put(run_id, data)

    async def write_worker(self, worker_id: str, data: bytes) -> None:
        await (await self._js.key_value(NAMES.workers_bucket)).put(worker_id, data)

    async def worker(self, worker_id: str) -> WorkerRecord:
        value = (await (await self._js.key_value(NAMES.workers_bucket)).get(worker_id)).value
        assert value is not None
        return worker_from(value)

    async def letters(self, tag: str) -> list[DeadLetter]:
        subject = f"{NAMES.dlq_subject_prefix}.{tag}"
        found: list[DeadLetter] = []
        seq = 1
        while True:
            try:
                message = await self._js.get_msg(NAMES.dlq_stream, seq=seq, subject=subject, next=True)
            except NotFoundError:
                return found
            assert message.seq is not None
            assert message.data is not None
            found.append(letter_from(message.data))
            seq = message.seq + 1

    async def remove_worker(self, worker_id: str) -> None:
        await (await self._js.key_value(NAMES.workers_bucket)).delete(worker_id)

    async def write_key(self, key_id: str, data: bytes | None) -> None:
        bucket = await self._js.key_value(NAMES.auth_bucket)
        if data is None:
            await bucket.delete(f"api_keys.{key_id}")
        else:
            await bucket.put(f"api_keys.{key_id}", data)

    async def write_letter(self, tag: str, data: bytes) -> int:
        return (await self._js.publish(f"{NAMES.dlq_subject_prefix}.{tag}", data)).seq

    async def upload(self, name: str, data: bytes, tags: tuple[str, ...]) -> None:
        store = await self._js.object_store(NAMES.wheels_bucket)
        headers = {"sha256": hashlib.sha256(data).hexdigest(), "x-pyoco-wheel-tags": ",".join(tags)}
        await store.put(name, data, meta=ObjectMeta(name=name, headers=headers))

    async def delete_wheel(self, name: str) -> None:
        await (await self._js.object_store(NAMES.wheels_bucket)).delete(name)

    async def read_wheel(self, name: str) -> bytes:
        return (await (await self._js.object_store(NAMES.wheels_bucket)).get(name)).data or b""

    async def wheel_chunks(self, nuid: str) -> int:
        stream, subject = f"OBJ_{NAMES.wheels_bucket}", f"$O.{NAMES.wheels_bucket}.C.{nuid}"
        found, seq = 0, 1
        while True:
            try:
                message = await self._js.get_msg(stream, seq=seq, subject=subject, next=True)
            except NotFoundError:
                return found
            assert message.seq is not None
            found += len(message.data or b"")
            seq = message.seq + 1


@asynccontextmanager
async def jetstream_world(url: str) -> AsyncIterator[JetStreamWorld]:
    """The world on the server at `url`."""
    client = await nats.connect(url)
    try:
        await make_missing(client.jetstream(), NAMES)  # a test may write before it has a process that would make them
        yield JetStreamWorld(url, client)
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()
