"""The idempotency keys in memory, and the port to them of one simulated process."""

from __future__ import annotations

from pyoco_runtime.ports import Clock, Promise
from pyoco_runtime.testing.memory_connection import MemoryConnection

TTL_SEC = 86_400.0  # as the bucket is made


class MemoryDrawer:
    """Promises by key; each vanishes a day after it was stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._promises: dict[str, tuple[Promise, float]] = {}

    def get(self, key: str) -> Promise | None:
        """What is stored under the key."""
        promise, until = self._promises.get(key, (None, 0.0))
        return promise if self._clock() < until else None

    def put(self, key: str, promise: Promise) -> None:
        """Store it, whatever is there."""
        self._promises[key] = (promise, self._clock() + TTL_SEC)

    def drop(self, key: str) -> None:
        """Forget it."""
        self._promises.pop(key, None)


class MemoryPromises:
    """Implements ports.PromiseStore."""

    def __init__(self, connection: MemoryConnection, drawer: MemoryDrawer) -> None:
        self._connection = connection
        self._drawer = drawer

    async def claim(self, key: str, promise: Promise) -> Promise:
        return await self._connection.call("promises.claim", lambda: self._claim(key, promise))

    async def release(self, key: str, promise: Promise) -> None:
        await self._connection.call("promises.release", lambda: self._release(key, promise))

    def _claim(self, key: str, promise: Promise) -> Promise:
        older = self._drawer.get(key)
        if older is not None:
            return older
        self._drawer.put(key, promise)
        return promise

    def _release(self, key: str, promise: Promise) -> None:
        if self._drawer.get(key) == promise:
            self._drawer.drop(key)
