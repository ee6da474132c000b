"""An object store as a stream: where its messages are, and what can be asked of them."""

from __future__ import annotations

import base64
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from attrs import frozen

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, WheelGone
from pyoco_runtime.jetstream.bucket import EXPECTED, NO_MESSAGE, WRONG_LAST_SEQUENCE
from pyoco_runtime.jetstream.feed import Deliver, Feed, FeedMessage, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.object_meta import CHUNK_BYTES, StoredObject, meta_subject, object_from, time_from
from pyoco_runtime.jetstream.requests import Refused, Requests, payload_limit
from pyoco_runtime.jetstream.translate import translating

STALL_SEC = 10.0  # between two messages
EXPECTED_OF = "Nats-Expected-Last-Subject-Sequence-Subject"  # from nats-server 2.11 on; older ones refuse every write
ROLLUP = {"Nats-Rollup": "sub"}


@frozen
class Meta:
    """The message that describes an object."""

    stored: StoredObject
    data: bytes
    seq: int


class ObjectBucket:
    """The messages of one object store: a description for each name, and the chunks of each upload."""

    def __init__(self, link: NatsLink, name: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self.name = name
        self._stream = f"OBJ_{name}"
        self.prefix = f"$O.{name}"
        self.all_metas = f"{self.prefix}.M.>"

    @property
    def chunk_bytes(self) -> int:
        """How large a chunk may be. Raises NatsUnavailable."""
        return min(CHUNK_BYTES, payload_limit(self._link.client()))

    def metas(self) -> AbstractAsyncContextManager[Feed]:
        """The descriptions. Raises NatsUnavailable."""
        return feeding(self._link, self._requests, self._stream, self.all_metas, Deliver.LAST_PER_SUBJECT)

    def chunks(self, nuid: str) -> AbstractAsyncContextManager[Feed]:
        """The chunks of one upload. Raises NatsUnavailable."""
        return feeding(self._link, self._requests, self._stream, self._chunks_of(nuid), Deliver.ALL)

    async def about(self, name: str) -> Meta:
        """The description of an object that is there. Raises WheelGone, NatsUnavailable."""
        try:
            message = await self._last(meta_subject(self.prefix, name))
        except Refused as error:
            if error.err_code == NO_MESSAGE:
                raise WheelGone(name) from None
            raise
        data = base64.b64decode(message.get("data", ""))
        stored = object_from(data)
        if stored is None or stored.is_deleted:
            raise WheelGone(name)
        return Meta(stored, data, message["seq"])

    async def add_chunk(self, nuid: str, data: bytes) -> None:
        """Store one more. Raises NatsUnavailable, and then it may have happened."""
        await self._requests.store(self._chunks_of(nuid), data, {})

    async def describe(self, name: str, data: bytes, *, last_of_all: int) -> None:
        """Write a description if none of any object was written after that one.

        Raises RevisionConflict, NatsUnavailable, and Refused if it surely did not happen.
        """
        await self._write(name, data, {EXPECTED: str(last_of_all), EXPECTED_OF: self.all_metas})

    async def describe_anew(self, name: str, data: bytes, *, over: int) -> None:
        """Write a description over exactly that one. Raises RevisionConflict, NatsUnavailable."""
        await self._write(name, data, {EXPECTED: str(over)})

    async def purge(self, nuid: str) -> None:
        """Throw the chunks of an upload away. Raises NatsUnavailable."""
        await self._requests.call(f"$JS.API.STREAM.PURGE.{self._stream}", {"filter": self._chunks_of(nuid)})

    async def uploads(self) -> tuple[float, list[str]]:
        """The time by the server's clock, and the nuids that there are chunks of. Raises NatsUnavailable."""
        found = await self._requests.call(
            f"$JS.API.STREAM.INFO.{self._stream}", {"subjects_filter": self._chunks_of("*")}
        )
        subjects = found.get("state", {}).get("subjects") or {}
        return time_from(found.get("ts")) or 0.0, [subject.rpartition(".")[2] for subject in subjects]

    async def last_added_at(self, nuid: str) -> float | None:
        """When the last chunk of an upload was stored. Raises NatsUnavailable."""
        try:
            return time_from((await self._last(self._chunks_of(nuid))).get("time"))
        except Refused as error:
            if error.err_code == NO_MESSAGE:
                return None
            raise

    async def _last(self, subject: str) -> dict[str, Any]:
        answer = await self._requests.call(f"$JS.API.STREAM.MSG.GET.{self._stream}", {"last_by_subj": subject})
        message: dict[str, Any] = answer["message"]
        return message

    async def _write(self, name: str, data: bytes, expected: dict[str, str]) -> None:
        try:
            await self._requests.store(meta_subject(self.prefix, name), data, ROLLUP | expected)
        except Refused as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise RevisionConflict(f"{name}: {error}") from None
            raise

    def _chunks_of(self, nuid: str) -> str:
        return f"{self.prefix}.C.{nuid}"


async def read(feed: Feed) -> FeedMessage:
    """The next message of what is stored. Raises NatsUnavailable."""
    with translating(), anyio.fail_after(STALL_SEC):
        found = await feed.next()
    if found is None:
        raise NatsUnavailable("what was read has been removed meanwhile; ask again")
    return found
