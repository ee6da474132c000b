"""One request to the gateway as a value, and how its answer is read: all that both clients know about it."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from attrs import field, frozen

from pyoco_runtime.client.errors import InvalidArgument
from pyoco_runtime.client.upload import Upload

T = TypeVar("T")
Query = tuple[tuple[str, str], ...]


class Again(enum.Enum):
    """When a request may be sent once more."""

    SAFE = "whatever happened: done twice it has the effect of once"
    KEYED = "whatever happened, at a gateway that honours its Idempotency-Key; else only if it did not arrive"
    UNSENT = "only if it did not arrive"


@frozen(kw_only=True)
class Request(Generic[T]):
    """What to send, how to read what comes, and whether it may be sent again."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    query: Query = ()
    headers: Mapping[str, str] = field(factory=dict)
    content: bytes | None = None
    upload: Upload | None = None
    again: Again = Again.SAFE
    expects: frozenset[int] = frozenset({200})
    """The statuses that are answers and no refusals."""
    silence_sec: float | None = None
    """How long the gateway may take for its next bytes; None for as long as any request may."""
    gone_is: T | None = None
    """The answer if a repeated request finds nothing any more: the one before it was heard."""


def segment(name: str, value: str) -> str:
    """A value as one part of a path. Raises InvalidArgument for those that would name another path."""
    if value in ("", ".", ".."):
        raise InvalidArgument(f"{name}: {value!r} is no name; it must have at least one letter or digit")
    return quote(value, safe="")


def query_of(**values: str | float | bool | None) -> Query:
    """A query string without what was left out; an empty text counts as left out."""
    return tuple((name, _shown(value)) for name, value in values.items() if value is not None and value != "")


def json_body(value: Any) -> bytes:
    """A value as the body of a request. Raises InvalidArgument for what JSON has no form for."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"what is sent must be JSON: {error}") from error


def _shown(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
