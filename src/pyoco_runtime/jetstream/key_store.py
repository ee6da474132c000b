"""The API keys in their KV bucket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.errors import RevisionConflict
from pyoco_runtime.jetstream.bucket import Bucket
from pyoco_runtime.jetstream.feed import Deliver, feeding
from pyoco_runtime.jetstream.key_changes import NatsKeyChanges
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.model.api_key import ApiKeyRecord, check_key_id, is_key_id, newest_first, revoked
from pyoco_runtime.model.wire import key_from, key_to
from pyoco_runtime.ports import CaughtUp, KeyChanged, KeyRemoved, StoredKey

PREFIX = "api_keys."


class NatsKeyStore:
    """Implements ports.KeyStore over a bucket that exists. Make it with a link; it may be used whenever that is up."""

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._bucket = Bucket(self._requests, bucket)

    async def get(self, key_id: str) -> StoredKey | None:
        if not is_key_id(key_id):
            return None
        # of the leader, not of the nearest replica, which may not know of a revocation yet; and one round trip whether
        # the key is there or not
        entry = await self._bucket.last(PREFIX + key_id)
        return None if entry is None or entry.is_marker else StoredKey(key_from(entry.value, key_id), entry.revision)

    async def create(self, record: ApiKeyRecord) -> int:
        return await self._bucket.create(PREFIX + check_key_id(record.key_id), key_to(record))

    async def revoke(self, key_id: str, at: float) -> StoredKey | None:
        while True:
            found = await self.get(key_id)
            if found is None or found.record.revoked_at is not None:
                return found
            record = revoked(found.record, at)
            try:
                return StoredKey(record, await self._bucket.write(PREFIX + key_id, key_to(record), found.revision))
            except RevisionConflict:
                continue

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[NatsKeyChanges]:
        prefix = self._bucket.prefix + PREFIX
        stream = self._bucket.stream
        async with feeding(self._link, self._requests, stream, f"{prefix}*", Deliver.LAST_PER_SUBJECT) as feed:
            yield NatsKeyChanges(feed, prefix)

    async def list(self) -> list[StoredKey]:
        found: dict[str, StoredKey] = {}
        async with self.changes() as feed:
            while True:
                match await feed.next():
                    case KeyChanged(stored):
                        found[stored.record.key_id] = stored
                    case KeyRemoved(key_id):
                        found.pop(key_id, None)
                    case CaughtUp():
                        return sorted(found.values(), key=lambda stored: newest_first(stored.record))
