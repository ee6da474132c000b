"""The open connections of one life of the http actor."""

from __future__ import annotations

import asyncio
import logging
import math
import socket

import anyio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework

from pyoco_runtime.gateway.guarded_server import GuardedServer
from pyoco_runtime.gateway.tcp_server import Timer

_FIRST_REQUEST_SEC = 1.0  # a client that connected just before the stop has its request under way by then
_NEXT_REQUEST_SEC = 0.25  # the same for one that uses a kept connection again; longer than a request travels

_REFUSED_AT_ONCE = 64  # clients that are being told that there is no room; more are cut without a word
_REFUSED_SEC = 1.0  # for a client to read that

_BUSY = b'{"detail":"busy: too many connections are open","err_id":"ERR-PYOCO-0041","msg_id":"MSG-PYOCO-0041"}'
_NO_ROOM = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: " + str(len(_BUSY)).encode() + b"\r\n\r\n" + _BUSY
)

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
    """Serves each accepted socket with Hypercorn in a task of its own, and ends them all: gently, then surely.

    With `most` of them open, the one that is idle the longest makes room for the next; if none is idle, that one is
    told to come later. Left in the backlog it would wait without a word, and so would every health check.
    """

    def __init__(self, app: ASGIFramework, config: LifeConfig, most: int) -> None:
        self._app = ASGIWrapper(app)
        self._config = config
        self._most = most
        self._ending: set[asyncio.Task[None]] = set()
        """Made room already; the task has yet to notice."""
        self._refused: set[socket.socket] = set()
        self._open: dict[asyncio.Task[None], _Connection] = {}

    def add(self, accepted: socket.socket) -> None:
        """Serve this one, or refuse it if there is no room; returns at once."""
        if len(self._open) >= self._most and not self._make_room():
            self._refuse(accepted)
            return
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
        for accepted in tuple(self._refused):
            self._forget(accepted)
        await self._all_ended()

    def _make_room(self) -> bool:
        idle = min(self._open.items(), key=lambda each: each[1].idle_since)  # all of them, but only when it is full
        task, connection = idle
        if connection.idle_since == math.inf:
            return False
        connection.abort()
        task.cancel()
        del self._open[task]
        self._ending.add(task)
        return True

    def _refuse(self, accepted: socket.socket) -> None:
        if len(self._refused) >= _REFUSED_AT_ONCE:
            accepted.close()
            return
        try:
            accepted.send(_NO_ROOM)
            accepted.shutdown(socket.SHUT_WR)
        except OSError:
            accepted.close()
            return
        # not closed at once: what the client sends meanwhile would be answered with a reset, and our word be lost
        self._refused.add(accepted)
        asyncio.get_running_loop().call_later(_REFUSED_SEC, self._forget, accepted)

    def _forget(self, refused: socket.socket) -> None:
        self._refused.discard(refused)
        refused.close()

    async def _all_ended(self) -> None:
        while everyone := (*self._open, *self._ending):
            await asyncio.wait(everyone)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if (connection := self._open.pop(task, None)) is not None:
            connection.abort()
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
        self._server: GuardedServer | None = None
        self._since = asyncio.get_running_loop().time()

    @property
    def idle_since(self) -> float:
        """Since when it has no request, in the loop's time; infinite while it has one."""
        return self._since if self._server is None else self._server.idle_since

    async def serve(self, app: ASGIWrapper, config: Config) -> None:
        """Answer its requests until either side ends it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport, _ = await loop.connect_accepted_socket(lambda: protocol, self._socket)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, loop)
        self._server = GuardedServer(app, loop, config, self.progress, {}, reader, writer)
        await self._server

    def abort(self) -> None:
        """Close it without sending what the client has not read; a second time changes nothing."""
        if self._transport is None:
            self._socket.close()  # cancelled before it had begun
        else:
            self._transport.abort()
