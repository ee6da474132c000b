"""A running worker, as the program that embeds it sees it."""

from __future__ import annotations

from typing import Protocol

from pyoco_runtime.core import ActorStatus


class EmbeddedWorker(Protocol):
    """What `async with worker(...) as w` gives."""

    @property
    def worker_id(self) -> str:
        """Its id among all workers."""

    async def wait_ready(self) -> None:
        """Return as soon as it is connected to NATS and takes runs of all its tags."""

    def status(self) -> ActorStatus:
        """Its tree at this moment."""

    def restart(self, actor: str) -> None:
        """Begin to restart the actor with this path or unique last part. Raises NoSuchActor, NotRunning."""
