"""The actor that tells the run board how the runs change."""

from __future__ import annotations

import logging
from typing import assert_never

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.ports import CaughtUp, Clock, Link, RunChange, RunChanged, RunChanges, RunRemoved, RunStore
from pyoco_runtime.run_board import RunBoard

_log = logging.getLogger(__name__)

RETRY_SEC = 0.5  # when the link says up and the feed fails all the same
TURN = 64  # changes, some 2 ms; a feed that has a batch at hand never waits by itself


class RunIndexer:
    """While it is away the board keeps what it has, and says so."""

    def __init__(self, board: RunBoard, store: RunStore, link: Link, clock: Clock) -> None:
        self._board = board
        self._store = store
        self._link = link
        self._clock = clock

    async def run(self, context: Context) -> None:
        """Follow all runs until asked to stop; a feed that is lost is opened anew."""
        context.ready()
        with context.until_stopping():
            while True:
                await self._link.wait_up()
                try:
                    async with self._store.changes() as feed:
                        await self._follow(feed)
                except NatsUnavailable as error:
                    _log.debug("the feed of runs was lost: %s; opening it again", error)
                    self._board.lose(f"the feed of runs was lost: {error}", self._clock())
                    await anyio.sleep(RETRY_SEC)

    async def _follow(self, feed: RunChanges) -> None:
        self._board.begin_load()
        try:
            while True:
                for _ in range(TURN):
                    self._tell(await feed.next())
                await checkpoint()
        finally:
            self._board.lose("nobody follows the feed of runs", self._clock())

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
