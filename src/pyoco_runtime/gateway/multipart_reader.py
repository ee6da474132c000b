"""A multipart form, read as it comes in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, Preamble

from pyoco_runtime.errors import InvalidRequest

STALL_SEC = 60.0  # a client that sends nothing for so long is gone
HEAD_BYTES = 64 * 1024  # of what stands between two parts, and of the piece that is being read
PARTS_LIMIT = 100
REST_BYTES = 64 * 1024 * 1024  # that we take in for nothing, so that the client reads our refusal
REST_SEC = 10.0


class MultipartReader:
    """The parts of a form, one event after the other; no more than a piece of it is in memory."""

    def __init__(self, content_type: str | None, pieces: AsyncIterator[bytes], *, wanted: str) -> None:
        """Raises InvalidRequest if it is no form; it says what is `wanted` in one."""
        kind, options = parse_options_header(content_type)
        boundary = options.get("boundary", "").encode("latin-1", "replace")
        if kind != "multipart/form-data" or not boundary:
            raise InvalidRequest(f"send multipart/form-data with {wanted}")
        self._pieces = pieces
        self._decoder = MultipartDecoder(boundary, max_parts=PARTS_LIMIT)
        self._unread = memoryview(b"")
        self._is_in_part = False

    async def next(self) -> Field | File | Data | None:
        """The next event; None at the end. Raises InvalidRequest, and RequestTimeout when nothing comes."""
        while True:
            event = self._event()
            match event:
                case Field() | File():
                    self._is_in_part = True
                    return event
                case Data():
                    self._is_in_part = event.more_data
                    return event
                case Epilogue():
                    return None
                case Preamble():
                    pass
                case _:
                    await self._more()

    def _event(self) -> object:
        try:
            return self._decoder.next_event()
        except RequestEntityTooLarge:
            raise InvalidRequest(f"the form has more than {PARTS_LIMIT} parts") from None
        except ValueError as error:
            raise InvalidRequest(f"the form cannot be read: {error}") from error

    async def _more(self) -> None:
        if not self._is_in_part and len(self._decoder.buffer) > HEAD_BYTES:
            raise InvalidRequest(f"the form has more than {HEAD_BYTES} bytes before a part begins")
        if not self._unread:
            piece = await next_piece(self._pieces)
            if piece is None:
                self._decoder.receive_data(None)
                return
            self._unread = memoryview(piece)
        self._decoder.receive_data(bytes(self._unread[:HEAD_BYTES]))
        self._unread = self._unread[HEAD_BYTES:]


async def next_piece(pieces: AsyncIterator[bytes]) -> bytes | None:
    """The next piece of a body; None at the end. Raises RequestTimeout when nothing comes."""
    try:
        with anyio.fail_after(STALL_SEC):
            return await anext(pieces, None)
    except TimeoutError:
        raise RequestTimeout from None


async def take_rest(pieces: AsyncIterator[bytes]) -> None:
    """Let the client send the rest, within reason: most read no answer before they have sent it all."""
    size = 0
    with anyio.move_on_after(REST_SEC):
        while size < REST_BYTES and (piece := await anext(pieces, None)) is not None:
            size += len(piece)
