"""The feed of all runs."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.feed import Feed, FeedMessage
from pyoco_runtime.model.wire import snapshot_from
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, RunRemoved, StoredRun

_log = logging.getLogger(__name__)


class NatsRunChanges:
    """Implements ports.RunChanges over a feed of the bucket; it is lost when the link changes: open a new one."""

    def __init__(self, feed: Feed, prefix: str) -> None:
        self._feed = feed
        self._prefix = prefix
        self._told = False

    async def next(self) -> RunChange:
        while True:
            if self._feed.is_caught_up and not self._told:
                self._told = True
                return CaughtUp()
            message = await self._feed.next()
            change = None if message is None else self._change(message)
            if change is not None:
                return change

    def _change(self, message: FeedMessage) -> RunChange | None:
        run_id = message.subject[len(self._prefix) :]
        if is_marker(message.headers):
            return RunRemoved(run_id, message.seq)
        try:
            snapshot = snapshot_from(message.data)
            if snapshot.run_id != run_id:
                raise Unreadable("it is the snapshot of another run")
            return RunChanged(StoredRun(snapshot, message.seq))
        except Unreadable as error:
            _log.debug("skipped the value of %s: %s", run_id, error)
            return None
