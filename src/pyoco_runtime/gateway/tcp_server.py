"""Hypercorn's side of one connection, with less to do for each request and a close that cannot fail."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import AsyncioSingleTask
from hypercorn.events import Event, RawData, Updated
from hypercorn.typing import TaskGroup

_UNSENT_BYTES = 65_536  # of a client that does not read; from there on we wait for it


class Timer(AsyncioSingleTask):
    """Hypercorn's own, which fails in a connection that is being cut, and leaves its coroutine unawaited."""

    async def restart(self, task_group: TaskGroup, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin anew."""
        timer = action()
        try:
            await super().restart(task_group, lambda: timer)
        except RuntimeError:
            timer.close()  # the group has begun to cancel its tasks and takes no more
        except BaseException:
            timer.close()
            raise


class Server(TCPServer):
    """One connection. Hypercorn starts and cancels a task between any two requests to see whether the client is idle
    for too long, and waits twice for every answer to be taken; here one task looks on, and only much makes us wait.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.idle_task = Timer()
        self._idle_since = self.loop.time()

    async def protocol_send(self, event: Event) -> None:
        """Do what the protocol asks for."""
        match event:
            case Updated():
                self._idle_since = self.loop.time() if event.idle else math.inf
            case RawData(data=b""):
                pass
            case RawData() if self._has_room(len(event.data)):
                self.writer.write(event.data)  # if the client has gone, the reader says so
            case _:
                await super().protocol_send(event)

    def _has_room(self, more: int) -> bool:
        if self.send_lock.locked() or self.writer.is_closing():
            return False
        return self.writer.transport.get_write_buffer_size() + more <= _UNSENT_BYTES

    async def _idle_timeout(self) -> None:
        """Close the connection when it has been idle for too long, or is idle while we end."""
        ended = self.context.terminated
        while not ended.is_set() and (left := self._left_sec()) > 0:
            await _at_most(ended.wait(), left)
        if self._idle_since < math.inf:  # else the protocol closes it with its answer
            await asyncio.shield(self._initiate_server_close())

    def _left_sec(self) -> float:
        keep_sec = self.config.keep_alive_timeout
        return min(keep_sec, self._idle_since + keep_sec - self.loop.time())


async def _at_most(happening: Awaitable[object], seconds: float) -> None:
    try:
        await asyncio.wait_for(happening, seconds)
    except TimeoutError:
        return
