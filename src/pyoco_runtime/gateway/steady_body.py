"""The body of a request, read no faster than its handler takes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Any

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart.asgi import ASGIHTTPConnection
from quart.typing import ResponseTypes
from quart.wrappers import Request
from quart.wrappers.request import Body
from werkzeug.exceptions import RequestEntityTooLarge

CAPACITY_BYTES = 256 * 1024  # that wait unread; then the client has to wait

QUEUE_LIMIT = 100  # messages; Hypercorn's queue has ten


class SteadyBody(Body):
    """Quart's own takes in all that the client sends, as fast as it comes, whether anybody reads it or not.

    Over `limit` bytes are refused with 413, in whatever way it is read, but not in `pieces`.
    """

    def __init__(self, expected: int | None, limit: int | None) -> None:
        super().__init__(None, None)
        self._expected = expected or 0
        self._limit = limit
        self._total = 0
        self._is_wanted_whole = False
        self._is_discarded = False
        self._room = asyncio.Event()

    async def room(self) -> None:
        """Return when there is room for more."""
        while len(self._data) >= CAPACITY_BYTES and not self._is_wanted_whole and not self._is_discarded:
            self._room.clear()
            await self._room.wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Read it piece by piece, however long it is: whoever does so has a limit of its own."""
        self._limit = None
        async for piece in self:
            yield piece

    def discard(self) -> None:
        """Nobody reads the rest: let it come, and drop it."""
        self._is_discarded = True
        self._room.set()

    def append(self, data: bytes) -> None:
        if self._is_discarded:
            return
        self._total += len(data)
        super().append(data)
        if self._is_wanted_whole and self._is_over:
            self._must_raise = RequestEntityTooLarge()
            self.set_complete()

    async def __anext__(self) -> bytes:
        self._check()
        data = await super().__anext__()
        self._room.set()
        self._check()
        return data

    def __await__(self) -> Generator[Any, None, Any]:
        self._check()
        self._is_wanted_whole = True
        self._room.set()
        return (yield from super().__await__())

    @property
    def _is_over(self) -> bool:
        return self._limit is not None and max(self._expected, self._total) > self._limit

    def _check(self) -> None:
        if self._is_over:
            raise RequestEntityTooLarge


class SteadyRequest(Request):
    """A request with such a body."""

    body_class: type[Body] = SteadyBody


class SteadyConnection(ASGIHTTPConnection):
    """Quart's own, which waits while the body of its request is full.

    Hypercorn hands over what it has read through a short queue, and puts the end of the exchange into the same queue:
    an exchange that ends with a full queue would never end. So from the beginning of the answer on what comes is
    dropped, and whoever breaks an exchange off calls `drop_waiting`.
    """

    _body: Body | None = None

    def _create_request_from_scope(self, send: ASGISendCallable) -> Request:
        self.scope["path"] = self.scope["path"] or "/"  # of `GET ?x HTTP/1.1`, on which Quart fails
        return super()._create_request_from_scope(send)

    async def handle_messages(self, request: Request, receive: ASGIReceiveCallable) -> None:
        body = self._body = request.body
        while True:
            if isinstance(body, SteadyBody):
                await body.room()
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if message["type"] == "http.request":
                body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    body.set_complete()

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        if isinstance(self._body, SteadyBody):
            self._body.discard()
        await super()._send_response(send, response)


def drop_waiting(receive: ASGIReceiveCallable) -> None:
    """Take what the server has for us at this moment, without waiting."""
    for _ in range(QUEUE_LIMIT):
        step = receive().__await__()
        try:
            next(step)
        except StopIteration:
            continue
        step.close()
        return
