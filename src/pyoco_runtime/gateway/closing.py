"""The word to long answers that the http actor is about to stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class Closing:
    """Made once for an app, renewed for each life of Http, and given to every route that streams.

    A stream waits for its next event in `with closing.until():` and yields outside of it, because a generator must
    not yield inside a cancel scope; when `is_set`, it says good-bye and returns.
    """

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._until: set[anyio.CancelScope] = set()

    @property
    def is_set(self) -> bool:
        """Streams are to end now."""
        return self._event.is_set()

    def renew(self) -> None:
        """For Http: a new life begins; streams may run."""
        self._event = anyio.Event()

    def begin(self) -> None:
        """For Http: ask every stream to end, and end every `until` block."""
        self._event.set()
        for scope in self._until:
            scope.cancel()

    async def wait(self) -> None:
        """Return once streams are to end."""
        await self._event.wait()

    @contextmanager
    def until(self) -> Iterator[anyio.CancelScope]:
        """Run a block that ends early, as if cancelled, when the http actor is about to stop."""
        with anyio.CancelScope() as scope:
            self._until.add(scope)
            if self.is_set:
                scope.cancel()
            try:
                yield scope
            finally:
                self._until.discard(scope)
