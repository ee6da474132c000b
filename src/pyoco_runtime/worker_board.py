"""All workers as this process knows them, and those who want to hear of them."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyoco_runtime.bells import Bell, Bells
from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.model.worker_index import WorkerIndex


class WorkerBoard:
    """Belongs to the tree; the worker index actor tells it what the feed says. A follower that is slow costs nothing.

    That a worker is silent for too long is no change: nobody writes anything. Followers look again now and then.
    """

    def __init__(self, ttl_sec: float | None = None) -> None:
        """`ttl_sec` is how long the bucket keeps a record after its last write."""
        self.index = WorkerIndex(ttl_sec)
        self._followers = Bells()

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self.index.behind

    @property
    def followers(self) -> int:
        """How many listen."""
        return len(self._followers)

    def following(self) -> AbstractContextManager[Bell]:
        """Hear from now on that a worker or `behind` has changed. Read the index after this has begun."""
        return self._followers.following()

    # -- for the worker index actor ------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A feed was opened: all that is stored is told, and then every write."""
        self.index.begin_load()
        self._followers.ring()

    def end_load(self) -> None:
        """All that was stored has been told."""
        self.index.end_load()
        self._followers.ring()

    def lose(self, why: str, at: float) -> None:
        """The feed is lost."""
        self.index.lose(why, at)
        self._followers.ring()

    def put(self, record: WorkerRecord, revision: int) -> None:
        """This is stored."""
        if self.index.put(record, revision):
            self._followers.ring()

    def remove(self, worker_id: str, revision: int) -> None:
        """This is gone."""
        if self.index.remove(worker_id, revision):
            self._followers.ring()
