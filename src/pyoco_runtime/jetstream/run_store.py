"""The run snapshots in their KV bucket."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from pyoco_runtime.errors import PyocoError, RevisionConflict, RunExists
from pyoco_runtime.jetstream.bucket import Bucket, is_key
from pyoco_runtime.jetstream.feed import Deliver, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests, payload_limit
from pyoco_runtime.jetstream.run_changes import NatsRunChanges
from pyoco_runtime.jetstream.run_watch import NatsRunWatch
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.wire import snapshot_from, snapshot_to
from pyoco_runtime.ports import StoredRun

_log = logging.getLogger(__name__)


def log_too_large(run_id: str) -> None:
    """Say that a snapshot is over the cap however much is left out of it."""
    extra = {"run_id": run_id, "err_id": "ERR-PYOCO-0010", "msg_id": "MSG-PYOCO-0010"}
    _log.error(
        "the snapshot of run %s is too large even without its details; it is stored as it is", run_id, extra=extra
    )


class NatsRunStore:
    """Implements ports.RunStore over a bucket that exists. Make it with a link; it may be used whenever that is up.

    A run id that KV does not allow as a key is absent; creating it is a ValueError.
    """

    def __init__(
        self, link: NatsLink, bucket: str, max_bytes: int, on_too_large: Callable[[str], None] = log_too_large
    ) -> None:
        self._link = link
        self._requests = Requests(link)
        self._bucket = Bucket(self._requests, bucket)
        self._max_bytes = max_bytes
        self._on_too_large = on_too_large

    async def get(self, run_id: str) -> StoredRun | None:
        entry = await self._bucket.get(run_id)
        return None if entry is None else StoredRun(snapshot_from(entry.value), entry.revision)

    async def create(self, snapshot: RunSnapshot) -> int:
        if not is_key(snapshot.run_id):
            raise ValueError(f"{snapshot.run_id!r} cannot be stored: a run id is made of letters, digits and -_=/.")
        try:
            return await self._bucket.create(snapshot.run_id, self._encoded(snapshot))
        except RevisionConflict as error:
            raise RunExists(str(error)) from None

    async def create_all(self, snapshots: Sequence[RunSnapshot]) -> list[int | PyocoError]:
        entries = [(snapshot.run_id, self._encoded(snapshot)) for snapshot in snapshots]
        found = await self._bucket.create_all(entries)
        return [RunExists(str(each)) if isinstance(each, RevisionConflict) else each for each in found]

    async def update(self, snapshot: RunSnapshot, revision: int) -> int:
        return await self._bucket.write(snapshot.run_id, self._encoded(snapshot), revision)

    async def remove(self, run_id: str, revision: int) -> None:
        await self._bucket.delete(run_id, revision)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[NatsRunWatch]:
        watch = NatsRunWatch(self._link, self._requests, self._bucket)
        try:
            yield watch
        finally:
            await watch.close()

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[NatsRunChanges]:
        bucket = self._bucket
        everything = f"{bucket.prefix}>"
        async with feeding(self._link, self._requests, bucket.stream, everything, Deliver.LAST_PER_SUBJECT) as feed:
            yield NatsRunChanges(feed, bucket.prefix)

    def _encoded(self, snapshot: RunSnapshot) -> bytes:
        data, fits = snapshot_to(snapshot, self._max_bytes, payload_limit(self._link.client()))
        if not fits:
            self._on_too_large(snapshot.run_id)
        return data
