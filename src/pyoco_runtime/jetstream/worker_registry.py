"""The worker records in their KV bucket."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import evolve

from pyoco_runtime.errors import RevisionConflict, Unreadable
from pyoco_runtime.jetstream.bucket import Bucket, Entry, is_key
from pyoco_runtime.jetstream.feed import Deliver, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.jetstream.worker_changes import NatsWorkerChanges, record_of
from pyoco_runtime.model.wire import worker_to
from pyoco_runtime.model.worker import WorkerRecord

_log = logging.getLogger(__name__)


class NatsWorkerRegistry:
    """Implements ports.WorkerRegistry: one round trip while nobody else writes to the record."""

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._bucket = Bucket(self._requests, bucket)
        self._known: dict[str, tuple[int, WorkerRecord | None]] = {}
        """Of each worker that this process speaks for: the revision and the record as it was stored last."""

    async def publish(self, record: WorkerRecord) -> None:
        worker_id = record.worker_id
        if not is_key(worker_id):
            raise ValueError(f"{worker_id!r} cannot be stored: a worker id is made of letters, digits and -_=/.")
        known = self._known.pop(worker_id, None)
        revision, stored = known if known is not None else await self._read(worker_id)
        while True:
            merged = record if stored is None else _merged(record, stored)
            try:
                revision = await self._bucket.write(worker_id, worker_to(merged), revision)
            except RevisionConflict:
                revision, stored = await self._read(worker_id)
                continue
            self._known[worker_id] = (revision, merged)
            return

    async def get(self, worker_id: str) -> WorkerRecord | None:
        entry = await self._bucket.get(worker_id)
        return None if entry is None else record_of(worker_id, entry.value)

    async def hide(self, worker_id: str, hidden: bool, at: float) -> WorkerRecord | None:
        while is_key(worker_id):
            entry = await self._bucket.last(worker_id)
            if entry is None or entry.is_marker:
                break
            record = evolve(record_of(worker_id, entry.value), hidden=hidden, updated_at=at)
            try:
                await self._bucket.write(worker_id, worker_to(record), entry.revision)
            except RevisionConflict:
                continue  # the worker was faster, and what it says must stay
            return record
        return None

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[NatsWorkerChanges]:
        bucket = self._bucket
        everything = f"{bucket.prefix}>"
        async with feeding(self._link, self._requests, bucket.stream, everything, Deliver.LAST_PER_SUBJECT) as feed:
            yield NatsWorkerChanges(feed, bucket.prefix)

    async def _read(self, worker_id: str) -> tuple[int, WorkerRecord | None]:
        found = await self._bucket.last(worker_id)
        return (0, None) if found is None else (found.revision, _record(worker_id, found))


def _record(worker_id: str, entry: Entry) -> WorkerRecord | None:
    if entry.is_marker:
        return None
    try:
        return record_of(worker_id, entry.value)
    except Unreadable as error:
        _log.warning("the record of worker %s is written anew: %s", worker_id, error, extra={"worker_id": worker_id})
        return None


def _merged(record: WorkerRecord, stored: WorkerRecord) -> WorkerRecord:
    """What people and other programs have set stays; the rest is the worker's."""
    return evolve(record, hidden=stored.hidden, extra={**stored.extra, **record.extra})
