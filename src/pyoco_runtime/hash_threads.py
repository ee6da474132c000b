"""The threads in which hashes are made, so that the event loop does not wait for them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

LIMIT = 2  # hashes at a time; each has a core for itself, and requests need some too
LEFT_BEHIND_SEC = 0.02  # a part of what a hash takes


class HashThreads:
    """Never more than `limit` at work, also when requests are cut off in the middle of it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._turns = anyio.CapacityLimiter(limit)
        self._threads = anyio.CapacityLimiter(math.inf)
        self._at_work: set[object] = set()
        """Changed by single calls of `add` and `discard` only: threads do it too."""

    async def run(self, work: Callable[[], T]) -> T:
        """Wait for a turn, and return what `work` makes. Cancelled by anyio while it works, it waits for the end."""
        async with self._turns:
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
        except BaseException:
            if begun.acquire(blocking=False):  # it never began, and never will
                self._at_work.discard(begun)
            raise
