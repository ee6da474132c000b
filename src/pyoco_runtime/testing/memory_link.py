"""The NATS link in memory: scriptable, for tests of whoever needs a connection."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from pyoco_runtime.errors import LinkClosed, NatsUnavailable
from pyoco_runtime.ports import LinkStatus


class MemoryLink:
    """Implements ports.Link and ports.LinkOwner. `refuse` makes the next attempts fail, `say` plays the server."""

    def __init__(self) -> None:
        self.refuse_connect = 0
        self.refuse_prepare = 0
        self.connects = 0
        self.prepares = 0
        self.closed = 0
        self.problem = "not connected yet"
        self.is_up = False
        self.epoch = 0
        self._up = anyio.Event()
        self._statuses: list[LinkStatus] = []
        self._changed = anyio.Event()
        self._listeners: list[Callable[[], None]] = []

    def say(self, status: LinkStatus) -> None:
        """Let the connection report a status."""
        self._statuses.append(status)
        self._changed.set()

    async def wait_up(self) -> None:
        await self._up.wait()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def connect(self) -> None:
        await anyio.sleep(0.01)
        self.connects += 1
        if self.refuse_connect > 0:
            self.refuse_connect -= 1
            raise NatsUnavailable("connection refused")
        self.epoch += 1

    async def prepare(self) -> None:
        await anyio.sleep(0.01)
        if self._statuses and self._statuses[-1] is LinkStatus.CLOSED:
            raise LinkClosed("closed")
        self.prepares += 1
        if self.refuse_prepare > 0:
            self.refuse_prepare -= 1
            raise NatsUnavailable("no leader")

    async def next_status(self) -> LinkStatus:
        while not self._statuses:
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._statuses.pop(0)

    def declare_up(self) -> None:
        self.is_up = True
        self._up.set()
        self._tell()

    def declare_down(self, problem: str) -> None:
        self.problem = problem
        if self.is_up:
            self.is_up = False
            self._up = anyio.Event()
            self._tell()

    async def close(self) -> None:
        self.closed += 1
        self._statuses.clear()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()
