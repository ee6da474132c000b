"""The actor that tells the run board how the runs change."""

from __future__ import annotations

from typing import assert_never

from pyoco_runtime.actors.following import Audience, follow
from pyoco_runtime.core import Context
from pyoco_runtime.ports import CaughtUp, Clock, Link, RunChange, RunChanged, RunRemoved, RunStore
from pyoco_runtime.run_board import RunBoard


class RunIndexer:
    """While it is away the board keeps what it has, and says so."""

    def __init__(self, board: RunBoard, store: RunStore, link: Link, clock: Clock) -> None:
        self._board = board
        self._store = store
        self._link = link
        self._clock = clock

    async def run(self, context: Context) -> None:
        """Follow all runs until asked to stop; a feed that is lost is opened anew."""
        audience = Audience(self._board.begin_load, lambda why: self._board.lose(why, self._clock()))
        await follow(context, self._link, "runs", self._store.changes, self._tell, audience)

    def _tell(self, change: RunChange) -> None:
        match change:
            case RunChanged(stored):
                self._board.put(stored.snapshot, stored.revision)
            case RunRemoved(run_id, revision):
                self._board.remove(run_id, revision)
            case CaughtUp():
                self._board.end_load()
            case _:
                assert_never(change)
