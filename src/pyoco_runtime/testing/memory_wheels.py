"""The wheel store in memory: the shelf at the server, and the port of one simulated process."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
from attrs import frozen

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, WheelGone
from pyoco_runtime.model.wheels import WheelInfo, WheelShelf
from pyoco_runtime.ports import Clock, WheelLabel, WheelReading, WheelUpload, WheelWatch
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_feed import MemoryFeed

BUCKET = "pyoco_wheels"
CHUNK_BYTES = 128 * 1024
SWEEP_AFTER_SEC = 900.0


@frozen
class Chunks:
    """The bytes of an upload, whether a wheel has them or not."""

    data: bytes
    added_at: float


class MemoryShelf:
    """The wheels at the server; people upload and delete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._uploads = 0
        self._revision = 0
        self._wheels: dict[str, WheelInfo] = {}
        self._listeners: list[Callable[[], None]] = []
        self.chunks: dict[str, Chunks] = {}
        """By nuid."""

    def upload(self, name: str, data: bytes, tags: tuple[str, ...] = ()) -> WheelInfo:
        """Put a wheel on the shelf, in place of one of the same name, whatever else is there."""
        nuid = self.new_nuid()
        self.add_chunk(nuid, data)
        return self.commit(nuid, WheelLabel(name=name, tags=tags), self._revision)

    def delete(self, name: str) -> WheelInfo:
        """Take a wheel off the shelf. Raises WheelGone."""
        info = self.info(name)
        del self._wheels[name]
        self.purge(info.nuid)
        self._tell()
        return info

    def new_nuid(self) -> str:
        """One that nobody has."""
        self._uploads += 1
        return f"nuid-{self._uploads}"

    def add_chunk(self, nuid: str, data: bytes) -> None:
        """Store bytes that no wheel has yet."""
        found = self.chunks.get(nuid)
        self.chunks[nuid] = Chunks((found.data if found else b"") + data, self._clock())

    def purge(self, nuid: str) -> None:
        """Throw the bytes of an upload away."""
        self.chunks.pop(nuid, None)

    def commit(self, nuid: str, label: WheelLabel, revision: int) -> WheelInfo:
        """Put an upload on the shelf if that has this revision. Raises RevisionConflict."""
        if revision != self._revision:
            raise RevisionConflict(f"the shelf is at revision {self._revision}, not {revision}")
        now = self._clock()
        data = self.read(nuid)
        digest = hashlib.sha256(data).digest()
        info = WheelInfo(
            name=label.name,
            nuid=nuid,
            size_bytes=len(data),
            sha256_hex=digest.hex(),
            tags=label.tags,
            modified=now,
            bucket=BUCKET,
            digest="SHA-256=" + base64.urlsafe_b64encode(digest).decode(),
            mtime=datetime.fromtimestamp(now, UTC).isoformat(),
        )
        replaced = self._wheels.get(label.name)
        self._wheels[label.name] = info
        if replaced is not None:
            self.purge(replaced.nuid)
        self._tell()
        return info

    def look(self) -> WheelShelf:
        """All, by name."""
        return WheelShelf(tuple(self._wheels[name] for name in sorted(self._wheels)), self._revision)

    def info(self, name: str) -> WheelInfo:
        """What one is. Raises WheelGone."""
        if name not in self._wheels:
            raise WheelGone(f"there is no wheel {name}")
        return self._wheels[name]

    def read(self, nuid: str) -> bytes:
        """The bytes of an upload."""
        found = self.chunks.get(nuid)
        return found.data if found else b""

    def orphans(self) -> set[str]:
        """The uploads that no wheel has."""
        return set(self.chunks) - {info.nuid for info in self._wheels.values()}

    def sweep(self) -> int:
        """Throw away the orphans that are old; returns how many there were."""
        old = [nuid for nuid in self.orphans() if self._clock() - self.chunks[nuid].added_at >= SWEEP_AFTER_SEC]
        for nuid in old:
            self.purge(nuid)
        return len(old)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called at every change; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self) -> None:
        self._revision += 1
        for listener in tuple(self._listeners):
            listener()


class MemoryWheels:
    """Implements ports.WheelRegistry."""

    def __init__(self, connection: MemoryConnection, shelf: MemoryShelf) -> None:
        self._connection = connection
        self._shelf = shelf

    async def look(self) -> WheelShelf:
        return await self._connection.call("wheels.list", self._shelf.look)

    async def open(self, name: str) -> WheelReading:
        info = await self._connection.call("wheels.download", lambda: self._shelf.info(name))
        return MemoryReading(self._connection, self._shelf, info)

    async def download(self, name: str, to: Path) -> None:
        shelf = self._shelf
        data = await self._connection.call("wheels.download", lambda: shelf.read(shelf.info(name).nuid))
        _write(to, data)

    @asynccontextmanager
    async def uploading(self) -> AsyncIterator[WheelUpload]:
        upload = MemoryUpload(self._connection, self._shelf)
        try:
            yield upload
        finally:
            await upload.close()

    async def delete(self, name: str) -> WheelInfo:
        return await self._connection.call("wheels.delete", lambda: self._shelf.delete(name))

    async def sweep(self) -> int:
        return await self._connection.call("wheels.sweep", self._shelf.sweep)

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
        return list((await self.look()).wheels)


class MemoryReading:
    """Implements ports.WheelReading."""

    def __init__(self, connection: MemoryConnection, shelf: MemoryShelf, info: WheelInfo) -> None:
        self._connection = connection
        self._shelf = shelf
        self.info = info

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for start in range(0, self.info.size_bytes, CHUNK_BYTES):
            data = await self._connection.call("wheels.download", lambda: self._shelf.read(self.info.nuid))
            if not data:
                raise WheelGone(f"{self.info.name}: replaced after {start} bytes")
            yield data[start : start + CHUNK_BYTES]


class MemoryUpload:
    """Implements ports.WheelUpload."""

    def __init__(self, connection: MemoryConnection, shelf: MemoryShelf) -> None:
        connection.open()
        self._connection = connection
        self._shelf = shelf
        self._unsent = bytearray()
        self._may_be_seen = False
        self.nuid = shelf.new_nuid()

    async def write(self, data: bytes) -> None:
        self._unsent += data
        while len(self._unsent) >= CHUNK_BYTES:
            await self._send(CHUNK_BYTES)

    async def commit(self, label: WheelLabel, revision: int) -> WheelInfo:
        if self._unsent:
            await self._send(len(self._unsent))
        was_seen, self._may_be_seen = self._may_be_seen, True
        try:
            return await self._connection.call("wheels.commit", lambda: self._shelf.commit(self.nuid, label, revision))
        except RevisionConflict:
            self._may_be_seen = was_seen
            raise

    async def close(self) -> None:
        """Throw the bytes away, unless somebody may see the wheel."""
        if self._may_be_seen:
            return
        try:
            with anyio.CancelScope(shield=True):
                await self._connection.call("wheels.purge", lambda: self._shelf.purge(self.nuid))
        except NatsUnavailable:
            return  # they stay until they are swept

    async def _send(self, size: int) -> None:
        chunk = bytes(self._unsent[:size])
        await self._connection.call("wheels.chunk", lambda: self._shelf.add_chunk(self.nuid, chunk))
        del self._unsent[:size]


class MemoryWheelWatch:
    """Implements ports.WheelWatch."""

    def __init__(self, feed: MemoryFeed[None]) -> None:
        self._feed = feed

    async def changed(self) -> None:
        await self._feed.next()


def _write(to: Path, data: bytes) -> None:
    """Not in a thread: virtual time does not see threads."""
    to.write_bytes(data)
