"""The worker registry port of one simulated process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import evolve

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.model.wire import worker_from, worker_to
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.ports import CaughtUp, WorkerChange, WorkerChanged, WorkerChanges, WorkerRemoved
from pyoco_runtime.testing.memory_bucket import Entry, MemoryBucket
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_feed import MemoryFeed


class MemoryRegistry:
    """Implements ports.WorkerRegistry."""

    def __init__(self, connection: MemoryConnection, bucket: MemoryBucket) -> None:
        self._connection = connection
        self._bucket = bucket

    async def publish(self, record: WorkerRecord) -> None:
        await self._connection.call("registry.publish", lambda: self._store(record))

    async def get(self, worker_id: str) -> WorkerRecord | None:
        return await self._connection.call("registry.get", lambda: _read(self._bucket, worker_id))

    async def hide(self, worker_id: str, hidden: bool, at: float) -> WorkerRecord | None:
        return await self._connection.call("registry.hide", lambda: self._hide(worker_id, hidden, at))

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[WorkerChanges]:
        feed = await self._connection.call(
            "registry.watch", lambda: MemoryFeed[WorkerChange](self._connection, "registry.watch_next")
        )
        for entry in self._bucket.entries():
            _tell(feed, entry)
        feed.push(CaughtUp())
        stop = self._bucket.listen(lambda entry: _tell(feed, entry))
        try:
            with feed.opened():
                yield feed
        finally:
            stop()

    def _store(self, record: WorkerRecord) -> None:
        found = stored_worker(self._bucket, record.worker_id)
        if found is not None:
            record = evolve(record, hidden=found.hidden, extra={**found.extra, **record.extra})
        self._bucket.write(record.worker_id, worker_to(record), None)

    def _hide(self, worker_id: str, hidden: bool, at: float) -> WorkerRecord | None:
        found = _read(self._bucket, worker_id)
        if found is None:
            return None
        record = evolve(found, hidden=hidden, updated_at=at)
        self._bucket.write(worker_id, worker_to(record), None)
        return record


def stored_worker(bucket: MemoryBucket, worker_id: str) -> WorkerRecord | None:
    """The record of this worker; None too if it cannot be read."""
    try:
        return _read(bucket, worker_id)
    except Unreadable:
        return None


def _read(bucket: MemoryBucket, worker_id: str) -> WorkerRecord | None:
    entry = bucket.get(worker_id)
    return None if entry is None or entry.value is None else _record(worker_id, entry.value)


def _record(worker_id: str, data: bytes) -> WorkerRecord:
    """The record at the place of that worker, as NatsWorkerRegistry reads it: its place says whose it is."""
    return evolve(worker_from(data), worker_id=worker_id)


def _tell(feed: MemoryFeed[WorkerChange], entry: Entry) -> None:
    if entry.value is None:
        feed.push(WorkerRemoved(entry.key, entry.revision))
        return
    try:
        feed.push(WorkerChanged(_record(entry.key, entry.value), entry.revision))
    except Unreadable:
        return
