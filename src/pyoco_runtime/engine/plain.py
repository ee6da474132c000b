"""Values of user code as plain JSON that nobody can change afterwards."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VALUE_MAX_BYTES = 65_536  # a quarter of the default cap of a whole snapshot
TEXT_MAX_CHARS = 16_384  # of an error or a traceback; its end says most
_SAFE_INT = 2**63
_HERE = str(Path(__file__).parent)


def plain(value: Any, max_bytes: int = VALUE_MAX_BYTES) -> tuple[Any, bool]:
    """The value as JSON has it, or its repr; None and True if that is larger than `max_bytes`."""
    kind = type(value)
    if value is None or kind is bool or (kind is int and -_SAFE_INT < value < _SAFE_INT):
        return value, False
    if kind is str and len(value) * 6 <= max_bytes:  # a character is at most six as JSON
        return value, False
    if kind is float and math.isfinite(value):
        return value, False
    text = _as_json(value)
    return (None, True) if len(text) > max_bytes else (json.loads(text), False)


def plain_mapping(values: Mapping[Any, Any], max_bytes: int = VALUE_MAX_BYTES) -> tuple[dict[str, Any], bool]:
    """Each value by itself."""
    made: dict[str, Any] = {}
    is_truncated = False
    for name, value in values.items():
        made[str(name)], is_dropped = plain(value, max_bytes)
        is_truncated = is_truncated or is_dropped
    return made, is_truncated


def message(error: BaseException) -> str:
    """What the error says, or its kind if it says nothing."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the user's __str__ runs here
        text = ""
    return clipped(text or type(error).__name__)


def trace(error: BaseException) -> str:
    """The error's traceback as Python prints it, from where our own code ends."""
    where = error.__traceback__
    while where is not None and where.tb_next and where.tb_frame.f_code.co_filename.startswith(_HERE):
        where = where.tb_next
    try:
        return clipped("".join(traceback.format_exception(type(error), error, where)))
    except Exception:  # noqa: BLE001 - the user's __str__ and __repr__ run here
        return clipped("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__)


def clipped(text: str) -> str:
    """The text, without its middle if it is too long."""
    if len(text) <= TEXT_MAX_CHARS:
        return text
    half = TEXT_MAX_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001 - the user's mappings and numbers run here, and most of them are no JSON
        pass
    try:
        return json.dumps(repr(value))
    except Exception:  # noqa: BLE001 - the user's __repr__ runs here
        return json.dumps(f"<{type(value).__name__}>")
