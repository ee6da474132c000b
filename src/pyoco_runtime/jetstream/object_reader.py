"""An object that is read out of its store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

from pyoco_runtime.errors import Unreadable, WheelGone
from pyoco_runtime.jetstream.object_bucket import ObjectBucket, read
from pyoco_runtime.jetstream.object_meta import StoredObject, in_bucket
from pyoco_runtime.model.wheels import WheelInfo


class ObjectReader:
    """Implements ports.WheelReading."""

    def __init__(self, bucket: ObjectBucket, stored: StoredObject) -> None:
        self._bucket = bucket
        self._stored = stored

    @property
    def info(self) -> WheelInfo:
        return in_bucket(self._stored, self._bucket.name)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        stored = self._stored
        digest = hashlib.sha256()
        held = b""  # back, so that who reads a damaged object misses its end
        if stored.chunks:
            async with self._bucket.chunks(stored.info.nuid) as feed:
                for number in range(stored.chunks):
                    if feed.is_caught_up:
                        raise WheelGone(f"{stored.info.name}: replaced after {number} of {stored.chunks} parts")
                    chunk = (await read(feed)).data
                    digest.update(chunk)
                    if held:
                        yield held
                    held = chunk
        if digest.digest() != stored.digest:
            raise Unreadable(f"{stored.info.name}: the bytes in the store do not have the digest that it gives")
        if held:
            yield held
