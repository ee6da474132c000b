"""The wheels in their object store."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
from attrs import frozen

from pyoco_runtime.errors import WheelGone, WheelSyncFailed
from pyoco_runtime.jetstream.feed import Deliver, Feed, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Refused, Requests
from pyoco_runtime.jetstream.translate import translating
from pyoco_runtime.jetstream.wheel_watch import NatsWheelWatch
from pyoco_runtime.model.wheels import WheelInfo

NO_MESSAGE = 10037
STALL_SEC = 10.0  # between two messages
DIGEST = "SHA-256="


@frozen
class StoredObject:
    """What the object store says about one object."""

    info: WheelInfo
    chunks: int
    digest: bytes
    is_deleted: bool


class NatsWheelStore:
    """Implements ports.WheelStore in the format of the NATS object stores, so that nats-py's and the peer's fit.

    Read through our own feed: nats-py's `list` and `get` wait for ever when the connection is cut.
    A download whose digest is wrong raises WheelSyncFailed.
    """

    def __init__(self, link: NatsLink, bucket: str) -> None:
        self._link = link
        self._requests = Requests(link)
        self._stream = f"OBJ_{bucket}"
        self._prefix = f"$O.{bucket}"

    async def list(self) -> list[WheelInfo]:
        found: list[WheelInfo] = []
        async with self._feed("M.>", Deliver.LAST_PER_SUBJECT) as feed:
            while not feed.is_caught_up:
                stored = _stored(await _next(feed))
                if stored is not None and not stored.is_deleted:
                    found.append(stored.info)
        return sorted(found, key=lambda info: info.name)

    async def download(self, name: str, to: Path) -> None:
        stored = await self._about(name)
        part = to.with_name(f".{to.name}.{uuid4().hex}.part")
        try:
            if await self._write(stored, part) != stored.digest:
                raise WheelSyncFailed(f"{name}: the bytes in the store do not have the digest that it gives")
            os.replace(part, to)
        finally:
            part.unlink(missing_ok=True)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[NatsWheelWatch]:
        watch = NatsWheelWatch(self._link)
        try:
            await watch.open(f"{self._prefix}.M.>")
            yield watch
        finally:
            await watch.close()

    def _feed(self, subject: str, deliver: Deliver) -> AbstractAsyncContextManager[Feed]:
        return feeding(self._link, self._requests, self._stream, f"{self._prefix}.{subject}", deliver)

    async def _about(self, name: str) -> StoredObject:
        subject = f"{self._prefix}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
        try:
            answer = await self._requests.call(f"$JS.API.STREAM.MSG.GET.{self._stream}", {"last_by_subj": subject})
        except Refused as error:
            if error.err_code == NO_MESSAGE:
                raise WheelGone(name) from None
            raise
        stored = _stored(base64.b64decode(answer["message"].get("data", "")))
        if stored is None or stored.is_deleted:
            raise WheelGone(name)
        return stored

    async def _write(self, stored: StoredObject, part: Path) -> bytes:
        """Write the chunks; returns their digest."""
        digest = hashlib.sha256()
        async with (
            await anyio.open_file(part, "wb") as file,
            self._feed(f"C.{stored.info.nuid}", Deliver.ALL) as feed,
        ):
            for number in range(stored.chunks):
                if feed.is_caught_up:
                    raise WheelGone(f"{stored.info.name}: replaced after {number} of {stored.chunks} parts")
                chunk = await _next(feed)
                digest.update(chunk)
                await file.write(chunk)
        return digest.digest()


async def _next(feed: Feed) -> bytes:
    with translating(), anyio.fail_after(STALL_SEC):
        return (await feed.next()).data


def _stored(data: bytes) -> StoredObject | None:
    """Read an object's description; None if it is none, or a link."""
    try:
        found = json.loads(data)
        if (found.get("options") or {}).get("link"):
            return None
        headers = {name.lower(): _text(value) for name, value in (found.get("headers") or {}).items()}
        return StoredObject(
            WheelInfo(
                name=found["name"],
                nuid=found["nuid"],
                size_bytes=int(found.get("size") or 0),
                sha256_hex=headers.get("sha256") or _digest(found).hex() or None,
                tags=tuple(tag for each in headers.get("x-pyoco-wheel-tags", "").split(",") if (tag := each.strip())),
                modified=_time(found.get("mtime")),
            ),
            int(found.get("chunks") or 0),
            _digest(found),
            bool(found.get("deleted")),
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _text(value: Any) -> str:
    """Go writes a list of values for each header, Python one."""
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _digest(found: Mapping[str, Any]) -> bytes:
    text = str(found.get("digest") or "")
    if text[: len(DIGEST)].upper() != DIGEST:
        return b""
    try:
        encoded = text[len(DIGEST) :]
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        return b""


def _time(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (TypeError, ValueError):
        return None
