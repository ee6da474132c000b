"""An object on its way into its store."""

from __future__ import annotations

import hashlib
import logging

import anyio
from nats.nuid import NUID

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, WheelGone
from pyoco_runtime.jetstream.object_bucket import ObjectBucket
from pyoco_runtime.jetstream.object_meta import new_object, object_to
from pyoco_runtime.jetstream.requests import Refused
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.ports import WheelLabel

_log = logging.getLogger(__name__)

CLEAN_SEC = 5.0  # a client that has gone away does not keep us longer


class ObjectWriter:
    """Implements ports.WheelUpload: one chunk after the other, each acknowledged before the next is sent."""

    def __init__(self, bucket: ObjectBucket) -> None:
        self._bucket = bucket
        self.nuid = NUID().next().decode()
        self._chunk_bytes = bucket.chunk_bytes
        self._unsent = bytearray()
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._chunks = 0
        self._answered = 0
        self._may_be_seen = False

    async def write(self, data: bytes) -> None:
        self._unsent += data
        while len(self._unsent) >= self._chunk_bytes:
            await self._send(bytes(self._unsent[: self._chunk_bytes]))
            del self._unsent[: self._chunk_bytes]

    async def commit(self, label: WheelLabel, revision: int) -> WheelInfo:
        if self._unsent:
            await self._send(bytes(self._unsent))
            self._unsent.clear()
        stored = new_object(
            label,
            bucket=self._bucket.name,
            nuid=self.nuid,
            size=self._size,
            chunks=self._chunks,
            digest=self._sha256.digest(),
        )
        # what the name had before the write, which fails if anything has changed since
        replaced = await self._replaced(label.name)
        await self._describe(label.name, object_to(stored, label.content_type), revision)
        if replaced is not None:
            await self._clean(replaced)
        return stored.info

    async def close(self) -> None:
        """Throw the chunks away, unless somebody may see the object."""
        if self._may_be_seen or not self._chunks:
            return
        with anyio.CancelScope(shield=True):
            await self._clean(self.nuid, is_in_flight=self._answered < self._chunks)

    async def _send(self, chunk: bytes) -> None:
        self._sha256.update(chunk)
        self._size += len(chunk)
        self._chunks += 1
        await self._bucket.add_chunk(self.nuid, chunk)
        self._answered += 1

    async def _describe(self, name: str, data: bytes, revision: int) -> None:
        was_seen, self._may_be_seen = (
            self._may_be_seen,
            True,
        )  # before the write: whoever cancels us here knows as little
        try:
            await self._bucket.describe(name, data, last_of_all=revision)
        except (RevisionConflict, Refused):
            self._may_be_seen = was_seen  # this time it surely was not written
            raise

    async def _replaced(self, name: str) -> str | None:
        try:
            return (await self._bucket.about(name)).stored.info.nuid
        except WheelGone:
            return None

    async def _clean(self, nuid: str, *, is_in_flight: bool = False) -> None:
        try:
            with anyio.move_on_after(CLEAN_SEC):
                if is_in_flight:  # a purge may overtake a chunk, but no chunk overtakes another
                    await self._bucket.add_chunk(nuid, b"")
                await self._bucket.purge(nuid)
                return
        except NatsUnavailable as error:
            _log.info("the chunks of upload %s stay until they are swept: %s", nuid, error)
