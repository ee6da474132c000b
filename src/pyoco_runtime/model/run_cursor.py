"""The token that says where the next page of runs begins."""

from __future__ import annotations

import base64
import binascii
import json
import math

from pyoco_runtime.errors import InvalidQuery
from pyoco_runtime.model.positions import Position

VERSION = 1
LONGEST = 4096  # characters of a token; a run id has at most 512


def cursor_to(position: Position) -> str:
    """The token for the runs after this position. The peer's gateway understands it: it knows `u` and `r`."""
    raw = json.dumps({"v": VERSION, "u": position[0], "r": position[1]}, separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def cursor_from(token: str) -> Position:
    """The position in a token of ours or of the peer's, which has no version. Raises InvalidQuery."""
    try:
        found = json.loads(_unpacked(token))
    except (ValueError, RecursionError):
        found = None
    match found:
        case {"u": float() | int() as updated_at, "r": str(run_id), **rest} if rest.get("v", VERSION) == VERSION:
            at = _finite(updated_at)
            if at is not None:
                return at, run_id
    raise InvalidQuery("cursor: not a token of this list; pass `next_cursor` of the page before as it is")


def _unpacked(token: str) -> bytes:
    if len(token) > LONGEST or not token.isascii():
        raise ValueError("not a token")
    try:
        # not urlsafe_b64decode: that skips over characters that are not of its alphabet
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _finite(number: float) -> float | None:
    if isinstance(number, bool):
        return None
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
