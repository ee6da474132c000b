"""The work queue, and which tags are being pulled from it just now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from pyoco_runtime.errors import PyocoError
from pyoco_runtime.model.job import Job
from pyoco_runtime.ports import Puller, WorkQueue


class Pulling:
    """Implements ports.WorkQueue on another one, and tells when all tags are being pulled and when no longer."""

    def __init__(self, queue: WorkQueue, tags: tuple[str, ...]) -> None:
        self._queue = queue
        self._missing = set(tags)
        self._listener: Callable[[bool], None] = lambda is_complete: None

    def tell(self, listener: Callable[[bool], None]) -> None:
        """Have `listener` told whenever that changes; it begins with no."""
        self._listener = listener

    async def publish(self, job: Job) -> int:
        return await self._queue.publish(job)

    async def publish_all(self, jobs: Sequence[Job]) -> list[int | PyocoError]:
        return await self._queue.publish_all(jobs)

    @asynccontextmanager
    async def pulling(self, tag: str) -> AsyncIterator[Puller]:
        async with self._queue.pulling(tag) as puller:
            self._missing.discard(tag)
            if not self._missing:
                self._listener(True)
            try:
                yield puller
            finally:
                if not self._missing:
                    self._listener(False)
                self._missing.add(tag)
