"""The actor that tells the worker board how the workers change."""

from __future__ import annotations

from typing import assert_never

from pyoco_runtime.actors.following import Audience, follow
from pyoco_runtime.core import Context
from pyoco_runtime.ports import CaughtUp, Clock, Link, WorkerChange, WorkerChanged, WorkerRegistry, WorkerRemoved
from pyoco_runtime.worker_board import WorkerBoard


class WorkerIndexer:
    """While it is away the board keeps what it has, and says so."""

    def __init__(self, board: WorkerBoard, registry: WorkerRegistry, link: Link, clock: Clock) -> None:
        self._board = board
        self._registry = registry
        self._link = link
        self._clock = clock

    async def run(self, context: Context) -> None:
        """Follow all workers until asked to stop; a feed that is lost is opened anew."""
        audience = Audience(self._board.begin_load, lambda why: self._board.lose(why, self._clock()))
        await follow(context, self._link, "workers", self._registry.changes, self._tell, audience)

    def _tell(self, change: WorkerChange) -> None:
        match change:
            case WorkerChanged(record, revision):
                self._board.put(record, revision)
            case WorkerRemoved(worker_id, revision):
                self._board.remove(worker_id, revision)
            case CaughtUp():
                self._board.end_load()
            case _:
                assert_never(change)
