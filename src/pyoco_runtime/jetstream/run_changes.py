"""The feed of all runs."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.changes import Changes
from pyoco_runtime.jetstream.feed import FeedMessage
from pyoco_runtime.model.wire import snapshot_from
from pyoco_runtime.ports import RunChanged, RunRemoved, StoredRun

_log = logging.getLogger(__name__)


class NatsRunChanges(Changes[RunChanged | RunRemoved]):
    """Implements ports.RunChanges over a feed of the bucket."""

    def _change(self, key: str, message: FeedMessage) -> RunChanged | RunRemoved | None:
        if is_marker(message.headers):
            return RunRemoved(key, message.seq)
        try:
            snapshot = snapshot_from(message.data)
            if snapshot.run_id != key:
                raise Unreadable("it is the snapshot of another run")
            return RunChanged(StoredRun(snapshot, message.seq))
        except Unreadable as error:
            _log.debug("skipped the value of %s: %s", key, error)
            return None
