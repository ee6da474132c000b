"""The feed of all runs that are not over, read off the run board: whoever needs no more saves a feed of his own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from pyoco_runtime.errors import NatsUnavailable, PyocoError
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_summary import TEXT_LIMIT, RunSummary
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, RunRemoved, RunStore, RunWatch, StoredRun
from pyoco_runtime.run_board import RunBoard


class BoardChanges:
    """Implements ports.RunChanges. Of each run the latest change is kept, so that a slow reader holds few of them."""

    def __init__(self, runs: Sequence[RunSummary]) -> None:
        """`runs` are those that are not over."""
        self._coming: dict[str, RunChange] = {run.run_id: _changed(run) for run in runs}
        self._has_told_all = False
        self._is_lost = False
        self._bell = anyio.Event()

    async def next(self) -> RunChange:
        while True:
            if self._is_lost:
                raise NatsUnavailable("the index has lost its feed")
            if self._coming:
                return self._coming.pop(next(iter(self._coming)))
            if not self._has_told_all:
                self._has_told_all = True
                return CaughtUp()
            self._bell = anyio.Event()
            await self._bell.wait()

    def tell(self, news: RunNews) -> None:
        """For the board: this has happened."""
        over = news.after is None or news.after.status.is_terminal
        if over and news.before is not None and news.before.status.is_terminal:
            return
        self._coming.pop(news.run_id, None)
        if news.after is None or over:
            self._coming[news.run_id] = RunRemoved(news.run_id, news.revision)
        else:
            self._coming[news.run_id] = _changed(news.after)
        self._bell.set()

    def lose(self) -> None:
        """For the board: nobody tells it any more."""
        self._is_lost = True
        self._bell.set()


class IndexedRunStore:
    """Implements ports.RunStore on another one; its changes tell only what finds the jobs of runs that are not over."""

    def __init__(self, store: RunStore, board: RunBoard) -> None:
        self._store = store
        self._board = board

    async def get(self, run_id: str) -> StoredRun | None:
        return await self._store.get(run_id)

    async def create(self, snapshot: RunSnapshot) -> int:
        return await self._store.create(snapshot)

    async def create_all(self, snapshots: Sequence[RunSnapshot]) -> list[int | PyocoError]:
        return await self._store.create_all(snapshots)

    async def update(self, snapshot: RunSnapshot, revision: int) -> int:
        return await self._store.update(snapshot, revision)

    async def remove(self, run_id: str, revision: int) -> None:
        await self._store.remove(run_id, revision)

    def watching(self) -> AbstractAsyncContextManager[RunWatch]:
        return self._store.watching()

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[BoardChanges]:
        await self._board.caught_up()
        changes = BoardChanges(self._board.index.open_runs())
        with self._board.listening(changes):
            yield changes


def _changed(run: RunSummary) -> RunChange:
    tag = run.tag if run.tag is not None and len(run.tag) < TEXT_LIMIT else None  # one that was cut leads nowhere
    return RunChanged(
        StoredRun(
            RunSnapshot(
                run_id=run.run_id,
                flow_name=run.flow_name,
                status=run.status,
                tag=tag,
                updated_at=run.updated_at,
                worker_id=run.worker_id,
                start_time=run.start_time,
                attempt=None if run.job_seq is None else Attempt(run.job_seq, 1),
                submitted_at=run.submitted_at,
            ),
            run.revision,
        )
    )
