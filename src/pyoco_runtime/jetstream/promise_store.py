"""The idempotency keys in their KV bucket."""

from __future__ import annotations

import hashlib
import json

from attrs import asdict

from pyoco_runtime.errors import RevisionConflict
from pyoco_runtime.jetstream.bucket import Bucket, Entry
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.ports import Promise


class NatsPromiseStore:
    """Implements ports.PromiseStore over a bucket that exists and lets values grow old. One round trip for a new key.

    A key is stored under its digest, because it may be any text. What cannot be read is written over.
    """

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._bucket = Bucket(Requests(link), bucket)

    async def claim(self, key: str, promise: Promise) -> Promise:
        place = _place(key)
        data = json.dumps(asdict(promise), separators=(",", ":")).encode()
        revision = 0
        while True:
            try:
                await self._bucket.write(place, data, revision)
            except RevisionConflict:
                entry = await self._bucket.last(place)
                older = _promise(entry)
                if older is not None:
                    return older
                revision = 0 if entry is None else entry.revision
            else:
                return promise

    async def release(self, key: str, promise: Promise) -> None:
        place = _place(key)
        entry = await self._bucket.last(place)
        if entry is None or _promise(entry) != promise:
            return
        try:
            await self._bucket.delete(place, entry.revision)
        except RevisionConflict:
            return  # it has grown too old, or was released: whatever is there now is another's


def _place(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _promise(entry: Entry | None) -> Promise | None:
    if entry is None or entry.is_marker:
        return None
    try:
        found = json.loads(entry.value)
        return Promise(str(found["run_id"]), str(found["body_sha256"]), float(found["created_at"]))
    except (ValueError, KeyError, TypeError):
        return None
