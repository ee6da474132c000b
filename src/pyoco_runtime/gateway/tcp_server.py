"""Hypercorn's side of one connection, with less to do for each request, and an end to every wait."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import AsyncioSingleTask, WorkerContext
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol

from pyoco_runtime.gateway.life_config import LifeConfig
from pyoco_runtime.gateway.raw_answer import bad_head

LINGER_SEC = 1.0  # for a client to read why it was refused
HEAD_READ_BYTES = 2**14  # as many as a head may have: a longer one does not slip through in one piece
BODY_READ_BYTES = 2**16

_UNSENT_BYTES = 65_536  # of a client that does not read; from there on we wait for it


class Server(TCPServer):
    """One connection, watched by one timer for as long as it lives.

    Hypercorn starts and cancels a task between any two requests to see whether the client is idle for too long, waits
    twice for every answer to be taken, and waits without end for the rest of a head and for a client that does not
    read. Here a request costs no task and no timer, and whoever takes too long is shown out:

    | the client | gets |
    |---|---|
    | is idle for the keep-alive time | closed |
    | does not come to the end of a head in time | 408 |
    | sends a head that is too long, or none | 431, 400 |
    | reads nothing of its answer for the keep-alive time | cut |
    """

    config: LifeConfig

    def __init__(
        self,
        app: ASGIWrapper,
        config: LifeConfig,
        context: WorkerContext,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note_idle: Callable[[bool], None],
    ) -> None:
        super().__init__(app, asyncio.get_running_loop(), config, context, {}, reader, writer)
        self.idle_task = _NoTask()
        self._note_idle = note_idle
        self._idle_since = self.loop.time()
        """Infinite while it has a request."""
        self._head_since = math.inf
        self._is_refused = False
        self._written = 0
        self._taken = 0
        self._alarm = self.loop.call_later(config.keep_alive_timeout, self._look)

    async def run(self) -> None:
        """Answer requests until either side ends it."""
        try:
            await super().run()
        finally:
            self._alarm.cancel()

    def close_if_idle(self) -> None:
        """End it, unless it has a request: the protocol ends it with the answer."""
        if self._is_idle:
            self.writer.close()

    def refuse(self, answer: bytes) -> None:
        """Say this and no more. What the client still sends is read for a while: a reset would take our word away."""
        if self.writer.is_closing():
            return
        self._is_refused = True
        self.writer.write(answer)
        self.writer.write_eof()
        self._set_alarm(LINGER_SEC, self.writer.transport.abort)

    async def protocol_send(self, event: Event) -> None:
        """Do what the protocol asks for."""
        match event:
            case Updated():
                self._idle_since = self.loop.time() if event.idle else math.inf
                self._note_idle(event.idle)
            case Closed() | RawData() if self._is_refused:
                pass  # all is said
            case RawData(data=b""):
                pass
            case RawData():
                self._written += len(event.data)
                if self._has_room(len(event.data)):
                    self.writer.write(event.data)  # if the client has gone, the reader says so
                else:
                    await super().protocol_send(event)
            case _:
                await super().protocol_send(event)

    @property
    def _is_idle(self) -> bool:
        return self._idle_since < math.inf

    def _has_room(self, more: int) -> bool:
        if self.send_lock.locked() or self.writer.is_closing():
            return False
        return self.writer.transport.get_write_buffer_size() + more <= _UNSENT_BYTES

    async def _read_data(self) -> None:
        self._speak_for(self.protocol.protocol)
        try:
            while data := await self.reader.read(HEAD_READ_BYTES if self._is_idle else BODY_READ_BYTES):
                if not self._is_refused:
                    await self.protocol.handle(RawData(data))
                    self._watch_head()
        except OSError:
            pass  # the client has gone
        await self.protocol.handle(Closed())

    def _speak_for(self, protocol: Any) -> None:
        """Have what cannot be read answered in JSON too: Hypercorn's own answer has no body."""

        async def answer(status: int) -> None:
            self.refuse(bad_head(status))

        protocol._send_error_response = answer

    # -- the timer ----------------------------------------------------------------------------------------------------

    def _watch_head(self) -> None:
        if not self._has_half_a_head():
            self._head_since = math.inf
        elif self._head_since == math.inf:
            self._head_since = self.loop.time()
            self._set_alarm(self.config.head_sec, self._look)

    def _has_half_a_head(self) -> bool:
        protocol = self.protocol.protocol
        return self._is_idle and isinstance(protocol, H11Protocol) and bool(protocol.connection.trailing_data[0])

    def _look(self) -> None:
        now = self.loop.time()
        if now >= self._head_since + self.config.head_sec:
            self.refuse(bad_head(408))
        elif now >= self._idle_since + self.config.keep_alive_timeout or self._is_stuck():
            self.writer.transport.abort()
        else:
            ends = (self._head_since + self.config.head_sec, self._idle_since + self.config.keep_alive_timeout)
            self._set_alarm(min(self.config.keep_alive_timeout, *(end - now for end in ends)), self._look)

    def _is_stuck(self) -> bool:
        """Something waits to be taken, and nothing was taken since the last look."""
        unsent = self.writer.transport.get_write_buffer_size()
        before, self._taken = self._taken, self._written - unsent
        return unsent > 0 and self._taken == before

    def _set_alarm(self, delay_sec: float, action: Callable[[], None]) -> None:
        self._alarm.cancel()
        self._alarm = self.loop.call_later(delay_sec, action)


class _NoTask(AsyncioSingleTask):
    """In place of the task that Hypercorn has for idle connections."""

    async def restart(self, task_group: object, action: object) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""
