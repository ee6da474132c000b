"""The feed of all workers."""

from __future__ import annotations

import logging

from attrs import evolve

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.feed import Feed, FeedMessage
from pyoco_runtime.model.wire import worker_from
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.ports import CaughtUp, WorkerChange, WorkerChanged, WorkerRemoved

_log = logging.getLogger(__name__)


class NatsWorkerChanges:
    """Implements ports.WorkerChanges over a feed of the bucket; it is lost when the link changes: open a new one."""

    def __init__(self, feed: Feed, prefix: str) -> None:
        self._feed = feed
        self._prefix = prefix
        self._told = False

    async def next(self) -> WorkerChange:
        while True:
            if self._feed.is_caught_up and not self._told:
                self._told = True
                return CaughtUp()
            message = await self._feed.next()
            change = None if message is None else self._change(message)
            if change is not None:
                return change

    def _change(self, message: FeedMessage) -> WorkerChange | None:
        worker_id = message.subject[len(self._prefix) :]
        if is_marker(message.headers):
            return WorkerRemoved(worker_id, message.seq)
        try:
            return WorkerChanged(record_of(worker_id, message.data), message.seq)
        except Unreadable as error:
            _log.debug("skipped the record of worker %s: %s", worker_id, error)
            return None


def record_of(worker_id: str, data: bytes) -> WorkerRecord:
    """The record at the place of that worker; its place says whose it is. Raises Unreadable."""
    record = worker_from(data)
    return record if record.worker_id == worker_id else evolve(record, worker_id=worker_id)
