"""A sleep that others can bring to an end, now or soon."""

from __future__ import annotations

import math
from collections.abc import Iterator

import anyio

from pyoco_runtime.core.early import may_end_early


class Alarm:
    """One sleeper waits in `until`; whoever has news calls `ring_within`. News that come while it is awake are kept."""

    def __init__(self) -> None:
        self._at = math.inf
        self._scope: anyio.CancelScope | None = None

    def ring_within(self, seconds: float) -> None:
        """End the sleep in so many seconds at the latest."""
        at = anyio.current_time() + seconds
        if at < self._at:
            self._at = at
            if self._scope is not None and at < self._scope.deadline:
                self._scope.deadline = at

    @may_end_early
    def until(self, deadline: float = math.inf) -> Iterator[anyio.CancelScope]:
        """Run a block that ends early, as if cancelled, at the deadline or when it rings."""
        with anyio.CancelScope(deadline=min(deadline, self._at)) as scope:
            self._scope = scope
            try:
                yield scope
            finally:
                self._scope = None
                if anyio.current_time() >= self._at:
                    self._at = math.inf
