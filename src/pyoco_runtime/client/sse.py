"""Server-sent events as they come over the wire, after the WHATWG standard."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from attrs import frozen

_LINE_END = re.compile("\r\n|\r|\n")


@frozen
class ServerEvent:
    """One event; its id is the last one that the stream has named, with this event or before."""

    name: str
    data: str
    event_id: str | None = None


class SseParser:
    """Takes a stream's bytes in pieces of any size, and gives its events. One for each connection."""

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        """How long the server wants a client to wait before it connects again."""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with this."""
        for line in self._lines(self._decoder.decode(chunk)):
            if line:
                self._field(line)
            elif self._data:
                yield ServerEvent(self._name or "message", "\n".join(self._data), self._id)
                self._begin()
            else:
                self._begin()

    def _lines(self, text: str) -> list[str]:
        if not text:
            return []
        if self._after_cr and text[0] == "\n":  # the other half of a line end that was cut in two
            text = text[1:]
        self._after_cr = text[-1:] == "\r"
        *lines, self._rest = _LINE_END.split(self._rest + text)
        return lines

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value or None
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value[:9])

    def _begin(self) -> None:
        self._name = ""
        self._data = []
