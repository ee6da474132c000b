"""The worker records in their KV bucket."""

from __future__ import annotations

import logging

from attrs import evolve

from pyoco_runtime.errors import RevisionConflict, Unreadable
from pyoco_runtime.jetstream.bucket import Bucket, Entry, is_key
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.model.wire import worker_from, worker_to
from pyoco_runtime.model.worker import WorkerRecord

_log = logging.getLogger(__name__)


class NatsWorkerRegistry:
    """Implements ports.WorkerRegistry: one round trip while nobody else writes to the record."""

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._bucket = Bucket(Requests(link), bucket)
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

    async def _read(self, worker_id: str) -> tuple[int, WorkerRecord | None]:
        found = await self._bucket.last(worker_id)
        return (0, None) if found is None else (found.revision, _record(worker_id, found))


def _record(worker_id: str, entry: Entry) -> WorkerRecord | None:
    if entry.is_marker:
        return None
    try:
        return worker_from(entry.value)
    except Unreadable as error:
        _log.warning("the record of worker %s is written anew: %s", worker_id, error, extra={"worker_id": worker_id})
        return None


def _merged(record: WorkerRecord, stored: WorkerRecord) -> WorkerRecord:
    """What people and other programs have set stays; the rest is the worker's."""
    return evolve(record, hidden=stored.hidden, extra={**stored.extra, **record.extra})
