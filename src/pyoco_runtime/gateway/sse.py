"""Server-sent events: how one looks, and how a stream of them lives and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from quart import Response, request

from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.model.wire import dump

HEARTBEAT_SEC = 5.0
LONGEST_SEC = 600  # of a stream
STOPPING = {"reason": "the gateway stops; connect again"}
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


def event(name: str, data: object, event_id: int | None = None) -> bytes:
    """One event."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return head.encode() + b"event: " + name.encode() + b"\ndata: " + dump(data) + b"\n\n"


def streaming(events: AsyncIterator[bytes]) -> Response:
    """The answer that sends these until they end, however long that takes."""
    body = events if request.method != "HEAD" else b""  # who asks for the head waits for no event
    response = Response(body, content_type="text/event-stream", headers=HEADERS)
    response.timeout = None
    return response


class Patience:
    """How long a stream may still wait for its next event."""

    def __init__(self, closing: Closing, timeout_sec: float) -> None:
        self._closing = closing
        self._end = anyio.current_time() + timeout_sec
        self._silent_since = anyio.current_time()

    @property
    def is_over(self) -> bool:
        """The stream is to end: its time is up, or the server stops."""
        return self._closing.is_set or anyio.current_time() >= self._end

    @property
    def is_closing(self) -> bool:
        """The server stops."""
        return self._closing.is_set

    @property
    def is_silent(self) -> bool:
        """It is time for a sign of life."""
        return anyio.current_time() >= self._silent_since + HEARTBEAT_SEC

    async def next(self, coming: Callable[[], Awaitable[Any]]) -> Any:
        """What comes next, or None when it is time for a sign of life, which counts as given, or for the end."""
        found = None
        with self._until_silent():
            found = await coming()
        if found is None:
            self.spoke()
        return found

    async def goes_on(self, coming: Callable[[], Awaitable[None]]) -> bool:
        """Wait for this, or until it is time for a sign of life; False if the stream is to end."""
        with self._until_silent():
            await coming()
        return not self.is_over

    @contextmanager
    def _until_silent(self) -> Iterator[None]:
        with self._closing.until() as scope:
            scope.deadline = min(self._end, self._silent_since + HEARTBEAT_SEC)
            yield

    def spoke(self) -> None:
        """Something was sent: the silence begins anew. What came and was not sent does not end it."""
        self._silent_since = anyio.current_time()
