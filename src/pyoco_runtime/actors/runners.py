"""The actor that keeps the processes warm in which flows are executed."""

from __future__ import annotations

from typing import Protocol

from pyoco_runtime.core import Context


class Pool(Protocol):
    """The processes; they belong to the tree and outlive the lives of this actor, with the runs in them."""

    async def keep_warm(self) -> None:
        """Start what is missing, replace what is old, for ever. Cancelled, it leaves those alone that are there."""

    async def close(self) -> None:
        """End all of them."""


class Runners:
    """Keep the pool warm until asked to stop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, context: Context) -> None:
        """Ready at once: a run waits for its process, and a process that cannot be started is told there."""
        context.ready()
        with context.until_stopping():
            await self._pool.keep_warm()
