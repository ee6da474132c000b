"""Run async code in virtual time, on trio and on asyncio: an hour passes as soon as nobody has anything to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import anyio
import trio
import trio.testing

T = TypeVar("T")
Backend = Literal["trio", "asyncio"]


def run_virtual(test: Callable[[], Awaitable[T]], *, backend: Backend = "trio", seed: int | None = None) -> T:
    """Run `test` to its end in virtual time. With a `seed`, trio schedules tasks in an order that replays exactly."""
    if backend == "asyncio":
        return anyio.run(test, backend="asyncio", backend_options={"loop_factory": VirtualLoop})
    if seed is not None:
        _seed_trio(seed)
    return trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0))


def _seed_trio(seed: int) -> None:
    # private names, so trio is pinned and tests/sim/test_canary.py fails when they change
    run: Any = trio._core._run
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    run._r.seed(seed)


class Deadlock(RuntimeError):
    """Every task waits, and no timer is left that could wake one."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose clock jumps to the next timer whenever it would sleep. It does not see threads."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._virtual_now

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual_now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock("all tasks wait for each other: no timer is left in virtual time")
        self._loop.jump(timeout)
        return []
