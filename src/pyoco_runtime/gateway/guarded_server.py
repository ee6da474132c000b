"""A connection whose client may not take for ever to say what it wants."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from hypercorn.events import Closed, RawData

from pyoco_runtime.gateway.tcp_server import Server

HEAD_SEC = 20.0  # from the first byte of a request to the end of its headers
HEAD_READ_BYTES = 2**14  # as many as a head may have: a longer one does not slip through in one piece
BODY_READ_BYTES = 2**16

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class GuardedServer(Server):
    """Answers 408 and closes when the head of a request takes too long; Hypercorn waits for it without an end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._head_timer: asyncio.TimerHandle | None = None

    @property
    def idle_since(self) -> float:
        """Since when it has no request, in the loop's time; infinite while it has one."""
        return self._idle_since

    @property
    def _is_idle(self) -> bool:
        return self._idle_since < math.inf

    async def _read_data(self) -> None:
        try:
            while data := await self.reader.read(HEAD_READ_BYTES if self._is_idle else BODY_READ_BYTES):
                was_idle_since = self._idle_since
                await self.protocol.handle(RawData(data))
                self._watch_head(was_idle_since)
        except OSError:
            pass  # the client has gone
        finally:
            self._forget_head()
        await self.protocol.handle(Closed())

    def _watch_head(self, was_idle_since: float) -> None:
        """A piece came: it has begun a head, gone on with one, or ended one."""
        if self._idle_since != was_idle_since or not self._is_idle:
            self._forget_head()  # there was a whole request in it
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SEC, self._give_up)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if self._is_idle and not self.writer.is_closing():
            self.writer.write(_TOO_SLOW)
            self.writer.close()
