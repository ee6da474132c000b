"""Answers to clients that no route hears, as they go over the wire; each ends its connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from pyoco_runtime.errors import Busy
from pyoco_runtime.gateway.problems import detail_of, problem, status_of

_INVALID_REQUEST = 2
_ADVICE: Mapping[int, str] = {
    400: "this is not HTTP/1.1",
    408: "send the head of a request without a break",
    431: "send fewer or shorter headers, or a shorter path",
}


def bad_head(status: int) -> bytes:
    """To a head that cannot be read, is too long or takes too long."""
    detail = ": ".join(filter(None, (HTTPStatus(status).phrase.lower(), _ADVICE.get(status))))
    return _answer(status, detail, _INVALID_REQUEST)


def no_room(error: Busy) -> bytes:
    """To one client too many."""
    return _answer(status_of(error), detail_of(error), error.number, "retry-after: 1")


def _answer(status: int, detail: str, number: int | None, *more: str) -> bytes:
    body, _, _ = problem(detail, number, status)
    data = json.dumps(body, separators=(",", ":")).encode()
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(data)}",
        "connection: close",
        *more,
    )
    return "\r\n".join((*lines, "", "")).encode() + data
