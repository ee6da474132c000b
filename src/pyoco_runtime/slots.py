"""The places of a worker for runs, shared fairly between its tags."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import anyio

from pyoco_runtime.core import may_end_early


class _Turn:
    def __init__(self) -> None:
        self.came = anyio.Event()
        self.size = 0


class Slots:
    """A fixed number of places. They belong to the tree: consumers take them, runs give them back."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._running = 0
        self._turns: deque[_Turn] = deque()
        self._until_full: set[anyio.CancelScope] = set()

    @property
    def free(self) -> int:
        """Places that nobody has."""
        return self._free

    @property
    def running(self) -> int:
        """Places in which a run is."""
        return self._running

    async def reserve(self, most: int | None = None) -> int:
        """Wait for one's turn and get a fair share of the free places, at least one and `most` at most."""
        turn = _Turn()
        self._turns.append(turn)
        self._serve()
        try:
            await turn.came.wait()
        except BaseException:
            self._leave(turn)
            raise
        if most is not None and turn.size > most:
            self.give_back(turn.size - most)
            return most
        return turn.size

    def try_reserve(self) -> bool:
        """Get one place out of turn, if there is a free one."""
        if not self._free:
            return False
        self._free -= 1
        return True

    def give_back(self, count: int) -> None:
        """Return reserved places that were not needed."""
        self._free += count
        self._serve()

    def occupy(self) -> None:
        """Turn a reserved place into one in which a run is."""
        self._running += 1
        if self._running >= self.total:
            for scope in self._until_full:
                scope.cancel()

    def vacate(self) -> None:
        """A run has left its place."""
        self._running -= 1
        self.give_back(1)

    @may_end_early
    def until_full(self) -> Iterator[anyio.CancelScope]:
        """Run a block that ends early, as if cancelled, when there is a run in every place."""
        with anyio.CancelScope() as scope:
            self._until_full.add(scope)
            if self._running >= self.total:
                scope.cancel()
            try:
                yield scope
            finally:
                self._until_full.discard(scope)

    def _serve(self) -> None:
        while self._free and self._turns:
            turn = self._turns.popleft()
            turn.size = max(1, self._free // (len(self._turns) + 1))
            self._free -= turn.size
            turn.came.set()

    def _leave(self, turn: _Turn) -> None:
        if turn.size:
            self.give_back(turn.size)
        else:
            self._turns.remove(turn)
