"""A KV bucket, with as few round trips and as little work for each as there can be."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from pyoco_runtime.errors import NatsUnavailable, PyocoError, RevisionConflict
from pyoco_runtime.jetstream.requests import Message, NoResponders, Refused, Requests

KEY_LIMIT = 512  # characters; a control line over 4096 bytes would cost the whole connection
_KEY = re.compile(r"[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*")

OPERATION = "KV-Operation"
MARKER_REASON = "Nats-Marker-Reason"  # the server's own markers
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
NO_MESSAGE = 10037
NOT_FOUND = "404"


def is_key(text: str) -> bool:
    """Whether KV can store something under it."""
    return len(text) <= KEY_LIMIT and _KEY.fullmatch(text) is not None


def is_marker(headers: Mapping[str, str] | None) -> bool:
    """Whether a message of a bucket says that its key is gone."""
    return headers is not None and (headers.get(OPERATION) in ("DEL", "PURGE") or MARKER_REASON in headers)


@frozen
class Entry:
    """What is stored under a key; a marker says that it was deleted."""

    value: bytes
    revision: int
    is_marker: bool


class Bucket:
    """The values of one bucket. Every write compares the revision."""

    def __init__(self, requests: Requests, name: str) -> None:
        self._requests = requests
        self.stream = f"KV_{name}"
        self.prefix = f"$KV.{name}."
        self._direct = f"$JS.API.DIRECT.GET.{self.stream}.{self.prefix}"
        self._from_leader = f"$JS.API.STREAM.MSG.GET.{self.stream}"
        self._has_direct = True

    async def get(self, key: str) -> Entry | None:
        """The value, or None if there is surely none. Raises NatsUnavailable."""
        if not is_key(key):
            return None
        entry = await self._quickly(key) if self._has_direct else None
        if entry is None:
            entry = await self.last(key)  # any replica answers a direct get, and may not know it yet
        return None if entry is None or entry.is_marker else entry

    async def last(self, key: str) -> Entry | None:
        """The value or its marker as the stream's leader has it. Raises NatsUnavailable."""
        try:
            answer = await self._requests.call(self._from_leader, {"last_by_subj": self.prefix + key})
        except Refused as error:
            if error.err_code == NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        headers = headers_from(base64.b64decode(message.get("hdrs", "")))
        return Entry(base64.b64decode(message.get("data", "")), message["seq"], is_marker(headers))

    async def write(self, key: str, value: bytes, revision: int, headers: Mapping[str, str] | None = None) -> int:
        """Store over that revision, 0 for none; returns the new one. Raises RevisionConflict, NatsUnavailable."""
        if not is_key(key):
            raise RevisionConflict(f"{key!r} cannot be a key")
        expected = {EXPECTED: str(revision)}
        if headers is not None:
            expected.update(headers)
        try:
            return await self._requests.store(self.prefix + key, value, expected)
        except Refused as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                raise RevisionConflict(f"{key}: {error}") from None
            raise

    async def create(self, key: str, value: bytes) -> int:
        """Store where nothing is, or only a marker. Raises RevisionConflict, NatsUnavailable."""
        try:
            return await self.write(key, value, 0)
        except RevisionConflict:
            found = await self.last(key) if is_key(key) else None
            if found is None or not found.is_marker:
                raise
        return await self.write(key, value, found.revision)

    async def create_all(self, entries: Sequence[tuple[str, bytes]]) -> list[int | PyocoError]:
        """Store each where nothing is, not even a marker; each has its revision or its error in its place."""
        messages = [Message(self.prefix + key, value, {EXPECTED: "0"}) for key, value in entries]
        return [_conflict_or(found) for found in await self._requests.store_all(messages)]

    async def delete(self, key: str, revision: int) -> None:
        """Leave a marker over exactly that revision. Raises RevisionConflict, NatsUnavailable."""
        await self.write(key, b"", revision, {OPERATION: "DEL"})

    async def _quickly(self, key: str) -> Entry | None:
        try:
            message = await self._requests.ask(self._direct + key)
        except NoResponders:
            self._has_direct = False  # made without `direct`, as the peer does; the leader is asked from now on
            return None
        headers = message.headers
        if headers is None or headers.get("Status") == NOT_FOUND:
            return None
        if "Nats-Sequence" not in headers:
            raise NatsUnavailable(f"a direct get was answered with status {headers.get('Status')}")
        return Entry(message.data, int(headers["Nats-Sequence"]), is_marker(headers))


def _conflict_or(found: int | PyocoError) -> int | PyocoError:
    if isinstance(found, Refused) and found.err_code in WRONG_LAST_SEQUENCE:
        return RevisionConflict(str(found))
    return found


def headers_from(raw: bytes) -> dict[str, str]:
    """The headers of a message that came inside of an API answer."""
    pairs = (line.partition(":") for line in raw.decode("utf-8", "replace").split("\r\n")[1:])
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
