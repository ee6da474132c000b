"""The worker registry port of one simulated process."""

from __future__ import annotations

from attrs import evolve

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.model.wire import worker_from, worker_to
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.testing.memory_bucket import MemoryBucket
from pyoco_runtime.testing.memory_connection import MemoryConnection


class MemoryRegistry:
    """Implements ports.WorkerRegistry."""

    def __init__(self, connection: MemoryConnection, bucket: MemoryBucket) -> None:
        self._connection = connection
        self._bucket = bucket

    async def publish(self, record: WorkerRecord) -> None:
        await self._connection.call("registry.publish", lambda: self._store(record))

    def _store(self, record: WorkerRecord) -> None:
        found = stored_worker(self._bucket, record.worker_id)
        if found is not None:
            record = evolve(record, hidden=found.hidden, extra={**found.extra, **record.extra})
        self._bucket.write(record.worker_id, worker_to(record), None)


def stored_worker(bucket: MemoryBucket, worker_id: str) -> WorkerRecord | None:
    """The record of this worker; None too if it cannot be read."""
    entry = bucket.get(worker_id)
    if entry is None or entry.value is None:
        return None
    try:
        return worker_from(entry.value)
    except Unreadable:
        return None
