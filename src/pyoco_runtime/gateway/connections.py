"""The open connections of one life of the http actor."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial

import anyio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from pyoco_runtime.errors import Busy
from pyoco_runtime.gateway.life_config import LifeConfig
from pyoco_runtime.gateway.raw_answer import no_room
from pyoco_runtime.gateway.tcp_server import Server

_FIRST_REQUEST_SEC = 1.0  # a client that has just connected has its request under way by then
_NEXT_REQUEST_SEC = 0.25  # the same for one that uses a kept connection again; longer than a request travels
_LEAVING_AT_ONCE = 64  # clients that are being told that there is no room; more are cut without a word

_NO_ROOM = no_room(Busy("too many connections are open"))

_log = logging.getLogger("pyoco_runtime.http")


class Connections:
    """Serves each accepted socket with Hypercorn in a task of its own, and ends them all: gently, then surely.

    With `most` of them open, the one that is idle the longest makes room for the next; if none has been idle for long
    enough to be sure that no request is on the way, that next one is told to come later. Left in the backlog it would
    wait without a word, and so would every health check.
    """

    def __init__(self, app: ASGIFramework, config: LifeConfig, most: int) -> None:
        self._app = ASGIWrapper(app)
        self._config = config
        self._most = most
        self._now = asyncio.get_running_loop().time
        self._open: dict[_Connection, asyncio.Task[None]] = {}
        self._idle: dict[_Connection, float] = {}
        """Since when those of the open ones have no request that have none, the longest first."""
        self._leaving: dict[_Connection, asyncio.Task[None]] = {}
        """They take up no room: they have made it for another, or there was none for them."""

    def add(self, accepted: socket.socket) -> None:
        """Serve this one, or refuse it if there is no room; returns at once."""
        connection = _Connection(accepted)
        if len(self._open) < self._most or self._make_room():
            self._open[connection] = self._begin(connection)
            self._idle[connection] = self._now()
        elif len(self._leaving) < _LEAVING_AT_ONCE:
            self._leaving[connection] = self._begin(connection, _NO_ROOM)
        else:
            connection.close()

    async def drain(self) -> None:
        """Take a last request from everyone whose is on the way, and return when all have their answer."""
        self._config.is_ending = True
        for connection in tuple(self._open):
            connection.progress.is_draining = True
        with anyio.move_on_after(_NEXT_REQUEST_SEC):
            await self._all_ended()
        for connection in tuple(self._open):
            if connection.progress.requests:
                await connection.end()
        with anyio.move_on_after(_FIRST_REQUEST_SEC - _NEXT_REQUEST_SEC):
            await self._all_ended()
        for connection in tuple(self._open):
            await connection.end()
        await self._all_ended()

    async def cut(self) -> None:
        """Close every connection now, cancel its handlers, and return when they have ended."""
        for connection, task in (*self._open.items(), *self._leaving.items()):
            connection.abort()
            task.cancel()
        await self._all_ended()

    def _begin(self, connection: _Connection, refusal: bytes | None = None) -> asyncio.Task[None]:
        serving = connection.serve(self._app, self._config, partial(self._note_idle, connection), refusal)
        task = asyncio.get_running_loop().create_task(serving, name="http connection")
        task.add_done_callback(partial(self._ended, connection))
        return task

    def _note_idle(self, connection: _Connection, is_idle: bool) -> None:
        if not is_idle:
            self._idle.pop(connection, None)
        elif connection in self._open:
            self._idle[connection] = self._now()

    def _make_room(self) -> bool:
        connection, since = next(iter(self._idle.items()), (None, 0.0))
        if connection is None or self._now() - since < _FIRST_REQUEST_SEC:
            return False
        del self._idle[connection]
        task = self._leaving[connection] = self._open.pop(connection)
        connection.abort()
        task.cancel()
        return True

    async def _all_ended(self) -> None:
        while everyone := (*self._open.values(), *self._leaving.values()):
            await asyncio.wait(everyone)

    def _ended(self, connection: _Connection, task: asyncio.Task[None]) -> None:
        for place in (self._open, self._idle, self._leaving):
            place.pop(connection, None)
        connection.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an http connection failed", exc_info=error)


class _Progress(WorkerContext):
    """What Hypercorn asks about the server, here for a single connection.

    Hypercorn closes a silent connection as soon as the server stops. One that was accepted a moment ago has its first
    request on the way, one that was kept perhaps its next, and that request would be lost.
    """

    def __init__(self) -> None:
        super().__init__(max_requests=None)
        self.is_draining = False
        """End the connection after the next request."""

    async def mark_request(self) -> None:
        self.requests += 1
        if self.is_draining:
            await self.terminated.set()


class _Connection:
    """One client, from the accepted socket to its close."""

    def __init__(self, accepted: socket.socket) -> None:
        self.progress = _Progress()
        self._socket = accepted
        self._transport: asyncio.Transport | None = None
        self._server: Server | None = None

    async def serve(
        self, app: ASGIWrapper, config: LifeConfig, note_idle: Callable[[bool], None], refusal: bytes | None
    ) -> None:
        """Answer its requests until either side ends it; with a refusal, say only that."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport, _ = await loop.connect_accepted_socket(lambda: protocol, self._socket)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, loop)
        self._server = Server(app, config, self.progress, reader, writer, note_idle)
        if refusal is not None:
            self._server.refuse(refusal)
        elif self.progress.terminated.is_set():
            self._server.close_if_idle()
        await self._server

    async def end(self) -> None:
        """End it with the answer to its request, or now if it has none."""
        await self.progress.terminated.set()
        if self._server is not None:
            self._server.close_if_idle()

    def abort(self) -> None:
        """Close it without sending what the client has not read; a second time changes nothing."""
        if self._transport is not None:
            self._transport.abort()  # else its task is yet to begin: it is cancelled, and then closes the socket

    def close(self) -> None:
        """Leave nothing open, when its task has ended or was never made."""
        self.abort()
        if self._transport is None:
            self._socket.close()
