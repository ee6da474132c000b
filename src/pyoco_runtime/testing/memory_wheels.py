"""The wheel store in memory: the shelf at the server, and the port of one simulated process."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from pyoco_runtime.errors import WheelGone
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.ports import Clock, WheelWatch
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_feed import MemoryFeed


class MemoryShelf:
    """The wheels at the server; people upload and delete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uploads = 0
        self._wheels: dict[str, tuple[WheelInfo, bytes]] = {}
        self._listeners: list[Callable[[], None]] = []

    def upload(self, name: str, data: bytes, tags: tuple[str, ...] = ()) -> WheelInfo:
        """Put a wheel on the shelf, in place of one of the same name."""
        self._uploads += 1
        info = WheelInfo(
            name=name,
            nuid=f"nuid-{self._uploads}",
            size_bytes=len(data),
            sha256_hex=hashlib.sha256(data).hexdigest(),
            tags=tags,
            modified=self._clock(),
        )
        self._wheels[name] = (info, data)
        self._tell()
        return info

    def delete(self, name: str) -> None:
        """Take a wheel off the shelf."""
        del self._wheels[name]
        self._tell()

    def list(self) -> list[WheelInfo]:
        """All, by name."""
        return [self._wheels[name][0] for name in sorted(self._wheels)]

    def read(self, name: str) -> bytes:
        """The bytes of one. Raises WheelGone."""
        if name not in self._wheels:
            raise WheelGone(f"there is no wheel {name}")
        return self._wheels[name][1]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called at every change; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


class MemoryWheels:
    """Implements ports.WheelStore."""

    def __init__(self, connection: MemoryConnection, shelf: MemoryShelf) -> None:
        self._connection = connection
        self._shelf = shelf

    async def download(self, name: str, to: Path) -> None:
        data = await self._connection.call("wheels.download", lambda: self._shelf.read(name))
        _write(to, data)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[WheelWatch]:
        feed = await self._connection.call(
            "wheels.watch", lambda: MemoryFeed[None](self._connection, "wheels.watch_next")
        )
        stop = self._shelf.listen(lambda: feed.push_once(None))
        try:
            with feed.opened():
                yield MemoryWheelWatch(feed)
        finally:
            stop()

    async def list(self) -> list[WheelInfo]:
        return await self._connection.call("wheels.list", self._shelf.list)


class MemoryWheelWatch:
    """Implements ports.WheelWatch."""

    def __init__(self, feed: MemoryFeed[None]) -> None:
        self._feed = feed

    async def changed(self) -> None:
        await self._feed.next()


def _write(to: Path, data: bytes) -> None:
    """Not in a thread: virtual time does not see threads."""
    to.write_bytes(data)
