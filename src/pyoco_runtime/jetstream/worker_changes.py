"""The feed of all workers."""

from __future__ import annotations

import logging

from attrs import evolve

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.changes import Changes
from pyoco_runtime.jetstream.feed import FeedMessage
from pyoco_runtime.model.wire import worker_from
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.ports import WorkerChanged, WorkerRemoved

_log = logging.getLogger(__name__)


class NatsWorkerChanges(Changes[WorkerChanged | WorkerRemoved]):
    """Implements ports.WorkerChanges over a feed of the bucket."""

    def _change(self, key: str, message: FeedMessage) -> WorkerChanged | WorkerRemoved | None:
        if is_marker(message.headers):
            return WorkerRemoved(key, message.seq)
        try:
            return WorkerChanged(record_of(key, message.data), message.seq)
        except Unreadable as error:
            _log.debug("skipped the record of worker %s: %s", key, error)
            return None


def record_of(worker_id: str, data: bytes) -> WorkerRecord:
    """The record at the place of that worker; its place says whose it is. Raises Unreadable."""
    record = worker_from(data)
    return record if record.worker_id == worker_id else evolve(record, worker_id=worker_id)
