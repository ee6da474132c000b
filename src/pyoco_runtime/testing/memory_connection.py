"""The connection of one simulated process to the server in memory: every call travels there and back."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.errors import NatsUnavailable, NotSent, PyocoError
from pyoco_runtime.ports import LinkStatus
from pyoco_runtime.testing.faults import Faults, Lost, Operation
from pyoco_runtime.testing.memory_link import MemoryLink

T = TypeVar("T")


class MemoryWire(MemoryLink):
    """A memory link that can be cut; a link actor may drive it, and without one it comes back by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._is_cut = False
        self._has_owner = False

    def cut(self, problem: str) -> None:
        """Lose the connection at this moment."""
        self._is_cut = True
        if self._has_owner:
            self.say(LinkStatus.LOST)
        self.declare_down(problem)

    def mend(self) -> None:
        """Let the connection be made again, by its owner if it has one."""
        self._is_cut = False
        if self._has_owner:
            self.say(LinkStatus.CONNECTED)
        else:
            self.declare_up()

    async def connect(self) -> None:
        self._has_owner = True
        await self._refuse_while_cut()
        await super().connect()

    async def prepare(self) -> None:
        await self._refuse_while_cut()
        await super().prepare()

    def declare_up(self) -> None:
        if not self._is_cut:
            self.epoch = max(1, self.epoch)  # as NatsLink: a reconnect stays in its epoch, a new connect begins one
            super().declare_up()

    async def _refuse_while_cut(self) -> None:
        await checkpoint()
        if self._is_cut:
            raise NatsUnavailable("connection refused")


class MemoryConnection:
    """What the ports of one process share: whether the server can be reached, and how calls fare."""

    def __init__(self, name: str, link: MemoryLink, faults: Faults) -> None:
        self.name = name
        self.faults = faults
        self._link = link
        self._is_dead = False
        self._lost = anyio.Event()
        self._wakers: list[Callable[[], None]] = []
        link.on_change(self._on_change)

    @property
    def is_up(self) -> bool:
        """Calls may be made."""
        return self._link.is_up and not self._is_dead

    def die(self) -> None:
        """Never reach the server again, whatever the link says."""
        self._is_dead = True
        self._lose()

    def open(self) -> anyio.Event:
        """What is set when the connection of this moment is lost. Raises NatsUnavailable at once if there is none."""
        if not self.is_up:
            raise NotSent("the process is gone" if self._is_dead else self._link.problem)
        return self._lost

    async def call(self, operation: Operation, action: Callable[[], T]) -> T:
        """Send a request, let the server do `action`, and return with the answer. Raises NatsUnavailable."""
        await checkpoint()
        lost = self.open()
        trip = self.faults.draw(operation)
        await self.travel(trip.going_sec, lost)
        if trip.lost is Lost.BEFORE:
            raise NatsUnavailable(f"{operation}: the request was lost")
        answer = _performed(action)
        await self.travel(trip.coming_sec, lost)
        if trip.lost is Lost.AFTER:
            raise NatsUnavailable(f"{operation}: the answer was lost")
        return answer()

    async def travel(self, sec: float, lost: anyio.Event) -> None:
        """Let a message take its time. Raises NatsUnavailable as soon as the connection is lost."""
        if sec > 0:
            with anyio.move_on_after(sec):
                await lost.wait()
        else:
            await checkpoint()
        if lost.is_set():
            raise NatsUnavailable("the connection to NATS was lost during the call")

    @contextmanager
    def on_lost(self, waker: Callable[[], None]) -> Iterator[None]:
        """Have `waker` called at the moment that the connection is lost, while the block runs."""
        self._wakers.append(waker)
        try:
            yield
        finally:
            self._wakers.remove(waker)

    def _on_change(self) -> None:
        if self._link.is_up:
            self._lost = anyio.Event()
        else:
            self._lose()

    def _lose(self) -> None:
        self._lost.set()
        for waker in tuple(self._wakers):
            waker()


async def outcome_of(call: Awaitable[T]) -> T | PyocoError:
    """What a call gives or raises, as a value."""
    try:
        return await call
    except PyocoError as error:
        return error


def _performed(action: Callable[[], T]) -> Callable[[], T]:
    """What the server did, as an answer that can travel: a refusal is one too."""
    try:
        value = action()
    except PyocoError as error:
        return functools.partial(_refuse, error)
    return lambda: value


def _refuse(error: PyocoError) -> NoReturn:
    raise error
