"""The tokens that say where a page begins."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.errors import InvalidQuery
from pyoco_runtime.model.positions import Position
from pyoco_runtime.model.run_cursor import cursor_from, cursor_to


def token(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=100)))
def test_what_is_written_is_read(position: Position) -> None:
    """To the last bit of the time."""
    assert cursor_from(cursor_to(position)) == position


def test_a_token_of_the_peer_is_understood() -> None:
    """It has padding and no version."""
    raw = base64.urlsafe_b64encode(b'{"u": 12, "r": "r-1"}').decode()
    assert cursor_from(raw) == (12.0, "r-1")


@pytest.mark.parametrize(
    "wrong",
    [
        "x",
        "%%%%",
        "äöü",
        "A" * 5000,
        token([1, "r"]),
        token({"u": 1}),
        token({"u": "1", "r": "r"}),
        token({"u": True, "r": "r"}),
        token({"u": None, "r": "r"}),
        token({"u": 1, "r": 2}),
        token({"u": float("nan"), "r": "r"}),
        token({"u": float("inf"), "r": "r"}),
        token({"u": 10**400, "r": "r"}),
        token({"v": 2, "u": 1, "r": "r"}),
        token({"u": 1, "r": "r"})[:-3],
        base64.urlsafe_b64encode(b"[" * 3000).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_a_malformed_token_is_an_invalid_query(wrong: str) -> None:
    """And the message says what to pass instead."""
    with pytest.raises(InvalidQuery, match="next_cursor"):
        cursor_from(wrong)


@given(st.text(max_size=200))
def test_no_text_does_worse_than_an_invalid_query(wrong: str) -> None:
    """Whatever a client sends."""
    with contextlib.suppress(InvalidQuery):
        cursor_from(wrong)
