"""The open connections of one life of the http actor."""

from __future__ import annotations

import asyncio
import logging
import socket

import anyio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework

from pyoco_runtime.gateway.tcp_server import Server, Timer

_FIRST_REQUEST_SEC = 1.0  # a client that connected just before the stop has its request under way by then
_NEXT_REQUEST_SEC = 0.25  # the same for one that uses a kept connection again; longer than a request travels

_log = logging.getLogger("pyoco_runtime.http")


class LifeConfig(Config):
    """Hypercorn's settings for one life; from the moment that it ends, every answer says that the connection closes."""

    is_ending = False

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        headers = super().response_headers(protocol)
        if self.is_ending and protocol == "h11":
            headers.append((b"connection", b"close"))  # else a client may use it again just before it is closed
        return headers


class Connections:
    """Serves each accepted socket with Hypercorn in a task of its own, and ends them all: gently, then surely."""

    def __init__(self, app: ASGIFramework, config: LifeConfig) -> None:
        self._app = ASGIWrapper(app)
        self._config = config
        self._open: dict[asyncio.Task[None], _Connection] = {}

    def add(self, accepted: socket.socket) -> None:
        """Serve this one; returns at once."""
        connection = _Connection(accepted)
        serving = connection.serve(self._app, self._config)
        task = asyncio.get_running_loop().create_task(serving, name="http connection")
        self._open[task] = connection
        task.add_done_callback(self._ended)

    async def drain(self) -> None:
        """Take a last request from everyone whose is on the way, and return when all have their answer."""
        self._config.is_ending = True
        for connection in tuple(self._open.values()):
            connection.progress.is_draining = True
        with anyio.move_on_after(_NEXT_REQUEST_SEC):
            await self._all_ended()
        for connection in tuple(self._open.values()):
            if connection.progress.requests:
                await connection.progress.terminated.set()
        with anyio.move_on_after(_FIRST_REQUEST_SEC - _NEXT_REQUEST_SEC):
            await self._all_ended()
        for connection in tuple(self._open.values()):
            await connection.progress.terminated.set()
        await self._all_ended()

    async def cut(self) -> None:
        """Close every connection now, cancel its handlers, and return when they have ended."""
        for task, connection in self._open.items():
            connection.abort()
            task.cancel()
        await self._all_ended()

    async def _all_ended(self) -> None:
        while self._open:
            await asyncio.wait(self._open)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).abort()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an http connection failed", exc_info=error)


class _Progress(WorkerContext):
    """What Hypercorn asks about the server, here for a single connection.

    Hypercorn closes a silent connection as soon as the server stops. One that was accepted a moment ago has its first
    request on the way, one that was kept perhaps its next, and that request would be lost.
    """

    single_task_class = Timer

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

    async def serve(self, app: ASGIWrapper, config: Config) -> None:
        """Answer its requests until either side ends it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport, _ = await loop.connect_accepted_socket(lambda: protocol, self._socket)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, loop)
        await Server(app, loop, config, self.progress, {}, reader, writer)

    def abort(self) -> None:
        """Close it without sending what the client has not read; a second time changes nothing."""
        if self._transport is None:
            self._socket.close()  # cancelled before it had begun
        else:
            self._transport.abort()
