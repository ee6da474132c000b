"""The wheels in their object store.

Two uploads at once, and what a crash leaves
--------------------------------------------
A wheel is seen as soon as its description is stored, and the description is stored only if no description of any
wheel has been written since the shelf was looked at (`look`, then `commit`): one compare-and-set over the whole store,
made by the server that keeps it. So whoever decides by what is on the shelf decides alone, on any number of gateways,
and what the peer's gateway or a person with the nats tool has written in between is seen too. No lock and no claim is
stored anywhere, so a crash can leave none. It takes a nats-server of 2.11 or later; an older one refuses every upload.

| what fails | what is left | what becomes of it |
|---|---|---|
| the client goes away; the wheel is too large, or refused | chunks | purged at once |
| the gateway is killed, or NATS is away, before the description is written | chunks | purged by `sweep` |
| NATS is away while the description is written | chunks, perhaps the wheel | looked up, then written again |
| ... and stays away | chunks, perhaps the wheel | the client is told 503; `sweep` purges what no wheel has |
| the gateway is killed after the description was written | the wheel, no event in the history | it stays |
| ... before the chunks of a replaced wheel were purged | old chunks | purged by `sweep` |
| another upload or a deletion comes in between | nothing | the shelf is looked at again, and it is decided anew |

`sweep` purges chunks that no description names and nobody has added to for `SWEEP_AFTER_SEC`, by the server's clock.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import anyio

from pyoco_runtime.errors import RevisionConflict, Unreadable, WheelSyncFailed
from pyoco_runtime.jetstream.hint_watch import NatsHintWatch
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.object_bucket import ObjectBucket, read
from pyoco_runtime.jetstream.object_meta import StoredObject, deleted, in_bucket, object_from
from pyoco_runtime.jetstream.object_reader import ObjectReader
from pyoco_runtime.jetstream.object_writer import ObjectWriter
from pyoco_runtime.model.wheels import WheelInfo, WheelShelf

SWEEP_AFTER_SEC = 900.0  # far longer than an upload may pause


class NatsWheelStore:
    """Implements ports.WheelRegistry in the format of the NATS object stores, so that nats-py's and the peer's fit.

    Read through our own feed: nats-py's `list` and `get` wait for ever when the connection is cut.
    A download whose digest is wrong raises WheelSyncFailed.
    """

    def __init__(self, link: NatsLink, bucket: str, sweep_after_sec: float = SWEEP_AFTER_SEC) -> None:
        self._link = link
        self._bucket = ObjectBucket(link, bucket)
        self._sweep_after_sec = sweep_after_sec

    async def look(self) -> WheelShelf:
        found: list[WheelInfo] = []
        revision = 0
        async with self._bucket.metas() as feed:
            while not feed.is_caught_up:
                message = await read(feed)
                revision = message.seq
                stored = object_from(message.data)
                if stored is not None and not stored.is_deleted:
                    found.append(in_bucket(stored, self._bucket.name))
        newest = {info.name: info for info in found}  # one that was replaced while we read is there twice
        return WheelShelf(tuple(newest[name] for name in sorted(newest)), revision)

    async def open(self, name: str) -> ObjectReader:
        return ObjectReader(self._bucket, (await self._bucket.about(name)).stored)

    async def download(self, name: str, to: Path) -> None:
        reader = await self.open(name)
        part = to.with_name(f".{to.name}.{uuid4().hex}.part")
        try:
            await _write(reader, part)
            os.replace(part, to)
        except Unreadable as error:
            raise WheelSyncFailed(str(error)) from error
        finally:
            part.unlink(missing_ok=True)

    @asynccontextmanager
    async def uploading(self) -> AsyncIterator[ObjectWriter]:
        writer = ObjectWriter(self._bucket)
        try:
            yield writer
        finally:
            await writer.close()

    async def delete(self, name: str) -> WheelInfo:
        while True:
            meta = await self._bucket.about(name)
            try:
                await self._bucket.describe_anew(name, deleted(meta.data), over=meta.seq)
            except RevisionConflict:
                continue
            await self._bucket.purge(meta.stored.info.nuid)
            return in_bucket(meta.stored, self._bucket.name)

    async def sweep(self) -> int:
        now, nuids = await self._bucket.uploads()
        if not nuids:
            return 0
        known = await self._known()  # after the chunks: what was committed in between is known
        swept = 0
        for nuid in nuids if known is not None else ():
            if nuid in (known or ()):
                continue
            added_at = await self._bucket.last_added_at(nuid)
            if added_at is not None and now - added_at >= self._sweep_after_sec:
                await self._bucket.purge(nuid)
                swept += 1
        return swept

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[NatsHintWatch]:
        watch = NatsHintWatch(self._link)
        try:
            await watch.open(self._bucket.all_metas)
            yield watch
        finally:
            await watch.close()

    async def _known(self) -> set[str] | None:
        """The nuids of all objects; None if there is one that we cannot read, whose chunks may be anything's."""
        known: dict[str, StoredObject] = {}
        async with self._bucket.metas() as feed:
            while not feed.is_caught_up:
                message = await read(feed)
                stored = object_from(message.data)
                if stored is None:
                    return None
                known[message.subject] = stored
        return {stored.info.nuid for stored in known.values() if not stored.is_deleted}

    async def list(self) -> list[WheelInfo]:
        return list((await self.look()).wheels)


async def _write(reader: ObjectReader, part: Path) -> None:
    async with await anyio.open_file(part, "wb") as file, aclosing(reader.chunks()) as chunks:
        async for chunk in chunks:
            await file.write(chunk)
