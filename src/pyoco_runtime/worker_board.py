"""All workers as this process knows them, and those who want to hear of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.model.worker_index import WorkerIndex


class WorkerFollower:
    """Hears that something has changed, however much it was. A cancelled `next` loses nothing."""

    def __init__(self) -> None:
        self._bell = anyio.Event()

    async def next(self) -> None:
        """Return when a worker or `behind` has changed since the last call, or since the following began."""
        await self._bell.wait()
        self._bell = anyio.Event()

    def ring(self) -> None:
        """For the board: something has changed."""
        self._bell.set()


class WorkerBoard:
    """Belongs to the tree; the worker index actor tells it what the feed says. A follower that is slow costs nothing.

    That a worker is silent for too long is no change: nobody writes anything. Followers look again now and then.
    """

    def __init__(self, ttl_sec: float | None = None) -> None:
        """`ttl_sec` is how long the bucket keeps a record after its last write."""
        self.index = WorkerIndex(ttl_sec)
        self._followers: set[WorkerFollower] = set()

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self.index.behind

    @property
    def followers(self) -> int:
        """How many listen."""
        return len(self._followers)

    @contextmanager
    def following(self) -> Iterator[WorkerFollower]:
        """Hear of changes from now on. Read the index after this has begun, and nothing is missed."""
        follower = WorkerFollower()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    # -- for the worker index actor ------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A feed was opened: all that is stored is told, and then every write."""
        self.index.begin_load()
        self._ring()

    def end_load(self) -> None:
        """All that was stored has been told."""
        self.index.end_load()
        self._ring()

    def lose(self, why: str, at: float) -> None:
        """The feed is lost."""
        self.index.lose(why, at)
        self._ring()

    def put(self, record: WorkerRecord, revision: int) -> None:
        """This is stored."""
        if self.index.put(record, revision):
            self._ring()

    def remove(self, worker_id: str, revision: int) -> None:
        """This is gone."""
        if self.index.remove(worker_id, revision):
            self._ring()

    def _ring(self) -> None:
        for follower in self._followers:
            follower.ring()
