"""Those who want to hear that something has changed, however much it was, and look for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class Bell:
    """One who listens. A cancelled `next` loses nothing."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    async def next(self) -> None:
        """Return when it has rung since the last call, or since the following began."""
        await self._event.wait()
        self._event = anyio.Event()

    def ring(self) -> None:
        """Something has changed."""
        self._event.set()


class Bells:
    """All who listen to one thing; one that is slow costs nothing."""

    def __init__(self) -> None:
        self._bells: set[Bell] = set()

    def __len__(self) -> int:
        return len(self._bells)

    @contextmanager
    def following(self) -> Iterator[Bell]:
        """Hear of changes from now on. Look after this has begun, and nothing is missed."""
        bell = Bell()
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    def ring(self) -> None:
        """Tell everybody."""
        for bell in self._bells:
            bell.ring()
