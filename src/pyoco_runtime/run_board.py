"""All runs as this process knows them, and those who want to hear of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio
from attrs import evolve

from pyoco_runtime.model.news_log import NewsLog
from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.run_index import MAX_RUNS, RunIndex
from pyoco_runtime.model.run_minutes import RunMinutes
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_tally import RunTally
from pyoco_runtime.ports import Clock
from pyoco_runtime.run_follower import OneRunFollower, RunFollower, Wanted

FOLLOWER_CAPACITY = 256  # news; some 0.2 MB, and a second of a busy house


class Listener(Protocol):
    """Hears of everything at once, and takes no time for it."""

    def tell(self, news: RunNews) -> None:
        """This has happened."""

    def lose(self) -> None:
        """What is heard from now on begins anew: listen again when the board has caught up."""


class RunBoard:
    """Belongs to the tree; the run index actor tells it what the feed says.

    A piece of news costs a call of `wanted` for each follower of lists, and one lookup for all followers of single runs
    together: those who wait for other runs cost nothing.
    """

    def __init__(self, max_runs: int = MAX_RUNS, clock: Clock = time.time) -> None:
        self.index = RunIndex(max_runs)
        self.tally = RunTally()
        """What has ended while we were listening."""
        self.minutes = RunMinutes()
        """What has ended in the last hour, also before we began to listen."""
        self._clock = clock
        self._log = NewsLog()
        self._has_been_complete = False
        self._followers: set[RunFollower] = set()
        self._of_one: dict[str, set[OneRunFollower]] = {}
        self._number_of_one = 0
        self._moved = anyio.Event()
        self._listeners: set[Listener] = set()

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self.index.behind

    @property
    def followers(self) -> int:
        """How many listen."""
        return len(self._followers) + self._number_of_one

    # -- for the gateway -----------------------------------------------------------------------------------------------

    @contextmanager
    def following(
        self, wanted: Wanted, capacity: int = FOLLOWER_CAPACITY, after_revision: int | None = None
    ) -> Iterator[RunFollower]:
        """Hear of all news that `wanted` accepts, from now on or after a revision that was heard of before.

        The news carry no snapshots. Whoever comes back too late is dropped at once, and everybody is dropped when the
        first picture is complete: it is not told piece by piece.
        """
        missed = self._log.after(after_revision) if after_revision is not None else []
        follower = RunFollower(wanted, capacity, missed or ())
        if missed is None:
            follower.drop()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    @contextmanager
    def following_run(self, run_id: str) -> Iterator[OneRunFollower]:
        """Hear of one run from now on, with its snapshot. Read the run after this has begun, and nothing is missed."""
        follower = OneRunFollower()
        self._of_one.setdefault(run_id, set()).add(follower)
        self._number_of_one += 1
        try:
            yield follower
        finally:
            self._number_of_one -= 1
            siblings = self._of_one[run_id]
            siblings.discard(follower)
            if not siblings:
                del self._of_one[run_id]

    async def caught_up(self) -> None:
        """Return once the index is as new as the feed."""
        await self._until(lambda: self.behind is None)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Tell all news, without snapshots, at once and in order, while the block runs."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def heard_of(self, revision: int) -> None:
        """Return once the index knows this revision of some run, or is behind; a list then shows what one has written.

        The caller limits the time.
        """
        await self._until(lambda: self.behind is not None or self.index.revision >= revision)

    # -- for the run index actor ---------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A feed was opened: all that is stored is told, and then every write."""
        self.index.begin_load()
        for listener in self._listeners:
            listener.lose()
        self._moved.set()

    def end_load(self) -> None:
        """All that was stored has been told."""
        gone = self.index.end_load()
        if not self._has_been_complete:
            self._has_been_complete = True
            self._drop_all()
        for news in gone:
            self._tell(news)
        self._moved.set()

    def lose(self, why: str, at: float) -> None:
        """The feed is lost."""
        self.index.lose(why, at)
        for listener in self._listeners:
            listener.lose()
        self._moved.set()

    def put(self, snapshot: RunSnapshot, revision: int) -> None:
        """This is stored."""
        self._tell(self.index.put(snapshot, revision))

    def remove(self, run_id: str, revision: int) -> None:
        """This is gone."""
        self._tell(self.index.remove(run_id, revision))

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            if self._moved.is_set():
                self._moved = anyio.Event()
            await self._moved.wait()

    def _tell(self, news: RunNews | None) -> None:
        self._moved.set()
        if news is None:
            return
        if self.behind is None:
            self.tally.note(news)
        self.minutes.note(news, self._clock())
        for one in self._of_one.get(news.run_id, ()):
            one.tell(news)
        # snapshots can be large: those who keep many news get none
        light = evolve(news, snapshot=None) if news.snapshot is not None else news
        self._log.add(light)
        for listener in self._listeners:
            listener.tell(light)
        if self._has_been_complete and self._followers:
            self._tell_lists(light)

    def _tell_lists(self, news: RunNews) -> None:
        for follower in [each for each in self._followers if not each.is_dropped]:
            follower.tell(news)

    def _drop_all(self) -> None:
        for follower in self._followers:
            follower.drop()
