"""The run store port of one simulated process, and the bucket that it shares with the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pyoco_runtime.errors import PyocoError, RevisionConflict, RunExists, Unreadable
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.wire import snapshot_from, snapshot_to
from pyoco_runtime.ports import CaughtUp, Clock, RunChange, RunChanged, RunChanges, RunRemoved, RunWatch, StoredRun
from pyoco_runtime.testing.memory_bucket import Entry, MemoryBucket
from pyoco_runtime.testing.memory_connection import MemoryConnection, outcome_of
from pyoco_runtime.testing.memory_feed import MemoryFeed
from pyoco_runtime.testing.memory_log import SOMEBODY, MemoryLog, SnapshotRemoved, SnapshotStored


class MemoryRuns:
    """The bucket of snapshots at the server; every write, and every refusal, goes into the log."""

    def __init__(self, clock: Clock, log: MemoryLog) -> None:
        self.bucket = MemoryBucket()
        self._clock = clock
        self._log = log

    def read(self, run_id: str) -> StoredRun | None:
        """What is stored. Raises Unreadable."""
        entry = self.bucket.get(run_id)
        return None if entry is None or entry.value is None else StoredRun(snapshot_from(entry.value), entry.revision)

    def write(self, run_id: str, data: bytes, expected: int | None, by: str = SOMEBODY) -> int:
        """Store over the expected revision (None: over any), and return the new one. Raises RevisionConflict."""
        over = self.bucket.revision_of(run_id)
        revision = 0
        try:
            revision = self.bucket.write(run_id, data, expected)
        finally:
            self._log.add(
                SnapshotStored(
                    at=self._clock(),
                    by=by,
                    run_id=run_id,
                    over=over,
                    expected=expected,
                    revision=revision,
                    snapshot=_readable(data),
                )
            )
        return revision

    def create(self, run_id: str, data: bytes, by: str) -> int:
        """Store where nothing is. Raises RunExists."""
        entry = self.bucket.get(run_id)
        if entry is not None and entry.value is not None:
            raise RunExists(f"there is a run {run_id}")
        return self.write(run_id, data, entry.revision if entry else 0, by)

    def remove(self, run_id: str, expected: int, by: str) -> None:
        """Delete at exactly that revision. Raises RevisionConflict."""
        over = self.bucket.revision_of(run_id)
        revision = 0
        try:
            revision = self.bucket.write(run_id, None, expected)
        finally:
            self._log.add(
                SnapshotRemoved(at=self._clock(), by=by, run_id=run_id, over=over, expected=expected, revision=revision)
            )

    def interfere(self, run_id: str) -> None:
        """Write what is there once more, as somebody else."""
        entry = self.bucket.get(run_id)
        if entry is not None and entry.value is not None:
            self.write(run_id, entry.value, None)


class MemoryRunStore:
    """Implements ports.RunStore."""

    def __init__(self, connection: MemoryConnection, runs: MemoryRuns, max_bytes: int) -> None:
        self._connection = connection
        self._runs = runs
        self._max_bytes = max_bytes

    async def get(self, run_id: str) -> StoredRun | None:
        return await self._connection.call("run_store.get", lambda: self._runs.read(run_id))

    async def create(self, snapshot: RunSnapshot) -> int:
        data, _ = snapshot_to(snapshot, self._max_bytes)
        by = self._connection.name
        return await self._connection.call("run_store.create", lambda: self._runs.create(snapshot.run_id, data, by))

    async def create_all(self, snapshots: Sequence[RunSnapshot]) -> list[int | PyocoError]:
        return [await outcome_of(self.create(snapshot)) for snapshot in snapshots]

    async def update(self, snapshot: RunSnapshot, revision: int) -> int:
        data, _ = snapshot_to(snapshot, self._max_bytes)

        def write() -> int:
            self._disturb(snapshot.run_id)
            return self._runs.write(snapshot.run_id, data, revision, self._connection.name)

        return await self._connection.call("run_store.update", write)

    async def remove(self, run_id: str, revision: int) -> None:
        def delete() -> None:
            self._disturb(run_id)
            if self._runs.bucket.revision_of(run_id) == 0:
                raise RevisionConflict(f"there is no run {run_id}")
            self._runs.remove(run_id, revision, self._connection.name)

        await self._connection.call("run_store.remove", delete)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[RunWatch]:
        feed = await self._connection.call(
            "run_store.watch", lambda: MemoryFeed[str](self._connection, "run_store.watch_next")
        )
        watch = MemoryRunWatch(self._connection, feed)
        stop = self._runs.bucket.listen(watch.hear)
        try:
            with feed.opened():
                yield watch
        finally:
            stop()

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[RunChanges]:
        feed = await self._connection.call(
            "run_store.watch", lambda: MemoryFeed[RunChange](self._connection, "run_store.watch_next")
        )
        for entry in self._runs.bucket.entries():
            _tell(feed, entry)
        feed.push(CaughtUp())
        stop = self._runs.bucket.listen(lambda entry: _tell(feed, entry))
        try:
            with feed.opened():
                yield feed
        finally:
            stop()

    def _disturb(self, run_id: str) -> None:
        if self._connection.faults.take_conflict(run_id):
            self._runs.interfere(run_id)


class MemoryRunWatch:
    """Implements ports.RunWatch; several writes to one run may be one hint."""

    def __init__(self, connection: MemoryConnection, feed: MemoryFeed[str]) -> None:
        self._connection = connection
        self._feed = feed
        self._chosen: frozenset[str] = frozenset()

    async def choose(self, run_ids: frozenset[str]) -> None:
        def switch() -> None:
            self._chosen = run_ids
            self._feed.keep(lambda run_id: run_id in run_ids)

        await self._connection.call("run_store.watch", switch)

    async def next(self) -> str:
        return await self._feed.next()

    def hear(self, entry: Entry) -> None:
        """A run was written to."""
        if entry.key in self._chosen:
            self._feed.push_once(entry.key)


def _tell(feed: MemoryFeed[RunChange], entry: Entry) -> None:
    if entry.value is None:
        feed.push(RunRemoved(entry.key, entry.revision))
        return
    snapshot = _readable(entry.value)
    if snapshot is not None:
        feed.push(RunChanged(StoredRun(snapshot, entry.revision)))


def _readable(data: bytes) -> RunSnapshot | None:
    try:
        return snapshot_from(data)
    except Unreadable:
        return None
