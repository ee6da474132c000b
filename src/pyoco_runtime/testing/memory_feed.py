"""What the server in memory pushes to one process, kept in order until it is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.testing.faults import Operation
from pyoco_runtime.testing.memory_connection import MemoryConnection

T = TypeVar("T")


class MemoryFeed(Generic[T]):
    """Lost for good with the connection that it was opened on; a cancelled `next` loses nothing."""

    def __init__(self, connection: MemoryConnection, operation: Operation) -> None:
        self._connection = connection
        self._operation = operation
        self._lost = connection.open()
        self._items: deque[T] = deque()
        self._bell = anyio.Event()

    def push(self, item: T) -> None:
        """Send one."""
        self._items.append(item)
        self._bell.set()

    def push_once(self, item: T) -> None:
        """Send one unless the same is on its way already."""
        if item not in self._items:
            self.push(item)

    def keep(self, wanted: Callable[[T], bool]) -> None:
        """Drop what is on its way and not wanted any more."""
        self._items = deque(item for item in self._items if wanted(item))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Wake whoever waits when the connection is lost."""
        with self._connection.on_lost(lambda: self._bell.set()):
            yield

    async def next(self) -> T:
        """The next one. Raises NatsUnavailable when the feed is lost."""
        await checkpoint()
        while not self._items and not self._lost.is_set():
            self._bell = anyio.Event()
            await self._bell.wait()
        trip = self._connection.faults.draw(self._operation)
        await self._connection.travel(trip.going_sec + trip.coming_sec, self._lost)
        if trip.lost is not None:
            self._lost = anyio.Event()
            self._lost.set()
            raise NatsUnavailable(f"{self._operation}: the watch was lost")
        return self._items.popleft() if self._items else await self.next()
