"""What an actor is, and what its supervisor gives it for one life."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

import anyio

from pyoco_runtime.core.early import may_end_early

current_path: ContextVar[str | None] = ContextVar("pyoco_actor", default=None)
"""The path of the actor whose task is running; logs carry it."""


class Actor(Protocol):
    """One small thing that runs.

    The law of `run`: do the work until it is done or `context.stopping` is set, then return. Call `context.ready()`
    once you can serve; until then the next sibling is not started. Raise to crash: the supervisor decides what
    follows. Let cancellation pass. A new object is made for every life, so nothing is left over from a crash; what
    must survive lives in JetStream or in a channel.
    """

    async def run(self, context: Context) -> None:
        """Work until done or asked to stop; raise to crash."""


class Context:
    """The supervisor's hand on one life of an actor."""

    def __init__(self, path: str, on_ready: Callable[[], None]) -> None:
        self.path = path
        self.stopping = anyio.Event()
        self._on_ready = on_ready
        self._until_stopping: set[anyio.CancelScope] = set()

    def ready(self) -> None:
        """Say that this actor serves. Saying it again changes nothing."""
        self._on_ready()

    def ask_to_stop(self) -> None:
        """For the supervisor: ask, and end every `until_stopping` block."""
        self.stopping.set()
        for scope in self._until_stopping:
            scope.cancel()

    @may_end_early
    def until_stopping(self) -> Iterator[anyio.CancelScope]:
        """Run a block that ends early, as if cancelled, when the supervisor asks this actor to stop."""
        with anyio.CancelScope() as scope:
            self._until_stopping.add(scope)
            if self.stopping.is_set():
                scope.cancel()
            try:
                yield scope
            finally:
                self._until_stopping.discard(scope)
