"""What an object store says about one of its objects, in the format of the NATS object stores."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import evolve, frozen

from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.ports import WheelLabel

CHUNK_BYTES = 128 * 1024  # as all clients of object stores have it
DIGEST = "SHA-256="
SHA256 = "sha256"
TAGS = "x-pyoco-wheel-tags"


@frozen
class StoredObject:
    """What the object store says about one object."""

    info: WheelInfo
    chunks: int
    digest: bytes
    is_deleted: bool


def meta_subject(prefix: str, name: str) -> str:
    """Where the description of the object with that name is stored."""
    return f"{prefix}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


def object_from(data: bytes) -> StoredObject | None:
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
                sha256_hex=headers.get(SHA256) or _digest(found).hex() or None,
                tags=tuple(tag for each in headers.get(TAGS, "").split(",") if (tag := each.strip())),
                modified=time_from(found.get("mtime")),
                bucket=str(found.get("bucket") or ""),
                digest=str(found.get("digest") or ""),
                mtime=str(found.get("mtime") or ""),
            ),
            int(found.get("chunks") or 0),
            _digest(found),
            bool(found.get("deleted")),
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def new_object(label: WheelLabel, *, bucket: str, nuid: str, size: int, chunks: int, digest: bytes) -> StoredObject:
    """The description of an object that is uploaded now."""
    now = datetime.now(UTC)  # for people: nothing is decided by it
    info = WheelInfo(
        name=label.name,
        nuid=nuid,
        size_bytes=size,
        sha256_hex=digest.hex(),
        tags=label.tags,
        modified=now.timestamp(),
        bucket=bucket,
        digest=DIGEST + base64.urlsafe_b64encode(digest).decode(),
        mtime=now.isoformat(),
    )
    return StoredObject(info, chunks, digest, is_deleted=False)


def object_to(stored: StoredObject, content_type: str) -> bytes:
    """The stored form, as nats-py writes and reads it: a header has one value, not a list of them."""
    info = stored.info
    headers = {"content-type": content_type, SHA256: stored.digest.hex()}
    if info.tags:
        headers[TAGS] = ",".join(info.tags)
    found = {
        "name": info.name,
        "bucket": info.bucket,
        "nuid": info.nuid,
        "size": info.size_bytes,
        "mtime": info.mtime,
        "chunks": stored.chunks,
        "digest": info.digest,
        "headers": headers,
        "options": {"max_chunk_size": CHUNK_BYTES},
    }
    return json.dumps(found).encode()


def deleted(data: bytes) -> bytes:
    """The same description after the object was deleted; what we do not know stays in it."""
    found = json.loads(data)
    return json.dumps({**found, "deleted": True, "size": 0, "chunks": 0, "digest": "", "mtime": ""}).encode()


def in_bucket(stored: StoredObject, bucket: str) -> WheelInfo:
    """What it is, with the bucket that it is in, whatever its writer said."""
    return evolve(stored.info, bucket=bucket)


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


def time_from(text: Any) -> float | None:
    """Read a time stamp; None if it is none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (TypeError, ValueError):
        return None
