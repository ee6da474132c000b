"""Turns at something scarce, shared fairly between lanes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class FairTurns:
    """At most `limit` turns at a time. The lanes that wait are served in rotation, and in a lane the newest is first.

    So whoever floods one lane keeps no other waiting for longer than one turn of each lane; and in a flooded lane who
    comes now has a chance, where at the end of a line that only grows there would be none.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lanes: OrderedDict[str, list[anyio.Event]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, lane: str) -> AsyncIterator[None]:
        """Wait for a turn and have it while the block runs; cancelled, also natively, it gives up its place."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(lane)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, lane: str) -> None:
        called = anyio.Event()
        self._lanes.setdefault(lane, []).append(called)
        has_turn = False
        try:
            await called.wait()
            has_turn = True
        finally:
            if not has_turn:
                self._leave(lane, called)

    def _leave(self, lane: str, called: anyio.Event) -> None:
        if called.is_set():  # in the same moment as the cancellation: somebody else can have it
            self._pass_on()
            return
        waiting = self._lanes[lane]
        waiting.remove(called)
        if not waiting:
            del self._lanes[lane]

    def _pass_on(self) -> None:
        if not self._lanes:
            self._free += 1
            return
        lane, waiting = self._lanes.popitem(last=False)
        waiting.pop().set()
        if waiting:
            self._lanes[lane] = waiting
