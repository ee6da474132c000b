"""The parser of server-sent events."""

from __future__ import annotations

import pytest

from pyoco_runtime.client.sse import ServerEvent, SseParser

TEXT = (
    "\ufeff: a comment\r\nretry: 250\r\nid: 1\r\nevent: a\r\ndata: one\r\ndata:two\r\n\r\n"
    "data:  ü\r\rid\nevent: none\n\ndata\n\nid: x\0y\nunknown: z\ndata: last\n\ndata: cut off"
)
EVENTS = [
    ServerEvent("a", "one\ntwo", "1"),
    ServerEvent("message", " ü", "1"),
    ServerEvent("message", "", None),
    ServerEvent("message", "last", None),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_stream_is_the_same_in_pieces_of_any_size(size: int) -> None:
    """Line ends, letters of many bytes and events may be cut anywhere."""
    parser, data = SseParser(), TEXT.encode()
    found = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
    assert found == EVENTS
    assert parser.retry_ms == 250
