"""The snapshot of a run as its one writer keeps it."""

from __future__ import annotations

from collections.abc import Callable

from pyoco_runtime.errors import RevisionConflict
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.verdict import Lost, on_conflict
from pyoco_runtime.ports import RunStore, StoredRun


class Record:
    """Writes by compare-and-set on the revision that this attempt wrote or read last."""

    def __init__(self, store: RunStore, stored: StoredRun, attempt: Attempt) -> None:
        """`stored` is what the attempt has claimed the run with."""
        self.snapshot = stored.snapshot
        self._revision = stored.revision
        self._store = store
        self.attempt = attempt

    async def write(self, change: Callable[[RunSnapshot], RunSnapshot]) -> Lost | None:
        """Store what `change` makes of the latest snapshot; says if the run is not ours. Raises NatsUnavailable."""
        while True:
            wanted = change(self.snapshot)
            try:
                self._revision = await self._store.update(wanted, self._revision)
            except RevisionConflict:
                lost = await self.read()
                if lost is None:
                    continue
                # a write that seemed to fail may have been stored: then it is our own end that we find
                return None if _same_end(self.snapshot, wanted) else lost
            self.snapshot = wanted
            return None

    async def read(self) -> Lost | None:
        """Catch up with what others have written; says if the run is not ours. Raises NatsUnavailable, Unreadable."""
        found = await self._store.get(self.snapshot.run_id)
        if found is not None:
            self.snapshot, self._revision = found.snapshot, found.revision
        return on_conflict(self.attempt, found.snapshot if found else None)


def _same_end(found: RunSnapshot, wanted: RunSnapshot) -> bool:
    return wanted.status.is_terminal and (found.status, found.attempt, found.end_time) == (
        wanted.status,
        wanted.attempt,
        wanted.end_time,
    )
