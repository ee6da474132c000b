"""Those who are told of runs: each at its own pace, none at the cost of the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import anyio

from pyoco_runtime.errors import Dropped
from pyoco_runtime.model.run_news import RunNews

Wanted = Callable[[RunNews], bool]
"""Whether a follower is told of this; it must neither wait nor raise."""


class RunFollower:
    """Hears of all news that it wants, in order, until it is too far behind. A cancelled `next` loses nothing."""

    def __init__(self, wanted: Wanted, capacity: int, missed: Iterable[RunNews] = ()) -> None:
        self._wanted = wanted
        self._capacity = capacity
        self._news: deque[RunNews] = deque()
        self._bell = anyio.Event()
        self.is_dropped = False
        for news in missed:
            self.tell(news)

    async def next(self) -> RunNews:
        """The next one. Raises Dropped when some were thrown away; then nothing more comes."""
        while not self._news:
            if self.is_dropped:
                raise Dropped("too many runs have changed since: look at all of them anew")
            self._bell = anyio.Event()
            await self._bell.wait()
        return self._news.popleft()

    def tell(self, news: RunNews) -> None:
        """For the board: keep it if it is wanted."""
        if self.is_dropped or not self._wanted(news):
            return
        if len(self._news) >= self._capacity:
            self.drop()
            return
        self._news.append(news)
        self._bell.set()

    def drop(self) -> None:
        """For the board: throw all away."""
        self.is_dropped = True
        self._news.clear()
        self._bell.set()


class OneRunFollower:
    """Hears of one run. Of news that it has no time for, only the latest is kept: it is never dropped."""

    def __init__(self) -> None:
        self._latest: RunNews | None = None
        self._bell = anyio.Event()

    async def next(self) -> RunNews:
        """The latest since the last call, as soon as there is one. A cancelled call loses nothing."""
        while self._latest is None:
            self._bell = anyio.Event()
            await self._bell.wait()
        found, self._latest = self._latest, None
        return found

    def tell(self, news: RunNews) -> None:
        """For the board: this is the latest."""
        self._latest = news
        self._bell.set()
