"""The threads in which hashes are made, so that the event loop does not wait for them."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from pyoco_runtime.fair_turns import FairTurns

T = TypeVar("T")

MOST = 4  # some hundred new keys a second; more would only let a flood of wrong keys take more of the machine
LEFT_BEHIND_SEC = 0.02  # a part of what a hash takes


def half_of_the_cores() -> int:
    """How many hashes at a time leave the event loop, and whoever else is here, the other half."""
    return min(MOST, max(1, (os.cpu_count() or 1) // 2))


class HashThreads:
    """Never more than `limit` at work, also when requests are cut off in the middle of it."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit or half_of_the_cores()
        self._turns = FairTurns(self._limit)
        self._threads = anyio.CapacityLimiter(math.inf)
        self._at_work: set[object] = set()
        """Changed by single calls of `add` and `discard` only: threads do it too."""

    async def run(self, work: Callable[[], T], lane: str) -> T:
        """Wait for a turn of the lane, and return what `work` makes. Cancelled by anyio meanwhile, it waits."""
        async with self._turns.turn(lane):
            # A native cancel, as the HTTP server does when a client goes away, ends our wait and not the thread. Such
            # threads count, and nobody tells the loop when they end: one that is gone could not be told.
            while len(self._at_work) >= self._limit:  # noqa: ASYNC110 (see above)
                await anyio.sleep(LEFT_BEHIND_SEC)
            return await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        begun = threading.Lock()
        self._at_work.add(begun)

        def job() -> T:
            if not begun.acquire(blocking=False):
                raise RuntimeError("nobody waits for it any more")  # and so nobody hears of it
            try:
                return work()
            finally:
                self._at_work.discard(begun)

        try:
            return await anyio.to_thread.run_sync(job, limiter=self._threads)
        finally:
            if begun.acquire(blocking=False):  # cancelled before it began: it never will
                self._at_work.discard(begun)
