"""The key store port of one simulated process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.errors import RevisionConflict, Unreadable
from pyoco_runtime.model.api_key import ApiKeyRecord, check_key_id, newest_first, revoked
from pyoco_runtime.model.wire import key_from, key_to
from pyoco_runtime.ports import CaughtUp, KeyChange, KeyChanged, KeyChanges, KeyRemoved, StoredKey
from pyoco_runtime.testing.memory_bucket import Entry, MemoryBucket
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_feed import MemoryFeed


class MemoryKeys:
    """Implements ports.KeyStore."""

    def __init__(self, connection: MemoryConnection, bucket: MemoryBucket) -> None:
        self._connection = connection
        self._bucket = bucket

    async def get(self, key_id: str) -> StoredKey | None:
        return await self._connection.call("keys.get", lambda: self._read(key_id))

    async def create(self, record: ApiKeyRecord) -> int:
        key_id = check_key_id(record.key_id)

        def write() -> int:
            entry = self._bucket.get(key_id)
            if entry is not None and entry.value is not None:
                raise RevisionConflict(f"there is a key {key_id}")
            return self._bucket.write(key_id, key_to(record), entry.revision if entry else 0)

        return await self._connection.call("keys.create", write)

    async def revoke(self, key_id: str, at: float) -> StoredKey | None:
        def write() -> StoredKey | None:
            found = self._read(key_id)
            if found is None or found.record.revoked_at is not None:
                return found
            record = revoked(found.record, at)
            return StoredKey(record, self._bucket.write(key_id, key_to(record), found.revision))

        return await self._connection.call("keys.revoke", write)

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[KeyChanges]:
        feed = await self._connection.call(
            "keys.watch", lambda: MemoryFeed[KeyChange](self._connection, "keys.watch_next")
        )
        for entry in self._bucket.entries():
            feed.push(_change(entry))
        feed.push(CaughtUp())
        stop = self._bucket.listen(lambda entry: feed.push(_change(entry)))
        try:
            with feed.opened():
                yield feed
        finally:
            stop()

    def _read(self, key_id: str) -> StoredKey | None:
        entry = self._bucket.get(key_id)
        if entry is None or entry.value is None:
            return None
        return StoredKey(key_from(entry.value, key_id), entry.revision)

    def _readable(self) -> list[StoredKey]:
        found = [change.stored for change in map(_change, self._bucket.entries()) if isinstance(change, KeyChanged)]
        return sorted(found, key=lambda stored: newest_first(stored.record))

    async def list(self) -> list[StoredKey]:
        return await self._connection.call("keys.list", self._readable)


def _change(entry: Entry) -> KeyChange:
    if entry.value is None:
        return KeyRemoved(entry.key, entry.revision)
    try:
        return KeyChanged(StoredKey(key_from(entry.value, entry.key), entry.revision))
    except Unreadable:
        return KeyRemoved(entry.key, entry.revision)
