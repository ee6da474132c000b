"""One life of one child: from its start to its end, within its times."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import anyio
from attrs import frozen

from pyoco_runtime.core.actor import Actor, Context, current_path
from pyoco_runtime.errors import CancelledByStranger, StartTimeout

if TYPE_CHECKING:
    from anyio.abc import TaskGroup


class Ending(enum.Enum):
    """How a life ended."""

    RETURNED = "returned"
    CRASHED = "crashed"
    KILLED = "killed"
    """Cancelled by its supervisor."""


@frozen
class Exit:
    """The end of a life, with the error if it crashed."""

    ending: Ending
    error: BaseException | None = None


class Owner(Protocol):
    """Whom a life reports to. All calls are synchronous."""

    def started(self) -> None:
        """The pause is over and the actor runs."""

    def ready(self) -> None:
        """The actor serves."""

    def stuck(self) -> None:
        """The actor was cancelled and did not end within the kill time."""

    def ended(self, exit: Exit) -> None:
        """The task is over; called exactly once."""


@frozen
class Times:
    """How long things may take, in seconds; None is without limit."""

    start: float | None
    shutdown: float | None
    kill: float


class Life:
    """One task that runs one actor, and a guard that enforces the start, shutdown and kill times.

    start -> [pause] -> starting -> ready -> asked -> cancelled -> stuck, ending anywhere on that way.
    """

    def __init__(self, owner: Owner, start: Callable[[], Actor], path: str, times: Times) -> None:
        self.actor: Actor | None = None
        self.path = path
        self.is_started = False
        self.is_ready = False
        self._owner = owner
        self._start = start
        self._times = times
        self._context = Context(path, self._ready)
        self._scope = anyio.CancelScope()
        self._grace = anyio.CancelScope()
        self._ended = anyio.Event()
        self._started_or_ended = anyio.Event()
        self._guarded = False
        self._timed_out = False

    def begin(self, tasks: TaskGroup, delay_sec: float) -> None:
        """Start the task."""
        tasks.start_soon(self._live, tasks, delay_sec, name=self.path)

    def stop(self, tasks: TaskGroup, *, now: bool) -> None:
        """Ask the actor to end, cancel it after its shutdown time, report it as stuck after the kill time."""
        self._context.ask_to_stop()
        if now or self._times.shutdown == 0:
            self._scope.cancel()
            self._grace.cancel()
        if not self._guarded:
            self._guarded = True
            tasks.start_soon(self._guard_end, name=f"{self.path} (stopping)")

    async def _live(self, tasks: TaskGroup, delay_sec: float) -> None:
        current_path.set(self.path)
        exit = Exit(Ending.KILLED)
        try:
            with self._scope:
                exit = await self._run(tasks, delay_sec)
        finally:
            self._ended.set()
            self._started_or_ended.set()
            self._owner.ended(self._judged(exit))

    async def _run(self, tasks: TaskGroup, delay_sec: float) -> Exit:
        try:
            if delay_sec > 0:
                with self._context.until_stopping():
                    await anyio.sleep(delay_sec)
                if self._context.stopping.is_set():
                    return Exit(Ending.RETURNED)
            # without a pause it is started even if it was asked to stop meanwhile: it may hold what must be given back
            self.is_started = True
            self._owner.started()
            if self._times.start is not None and self._times.start < math.inf:
                tasks.start_soon(self._guard_start, self._times.start, name=f"{self.path} (starting)")
            self.actor = self._start()
            await self.actor.run(self._context)
        except Exception as error:  # noqa: BLE001 - the one place where an actor's crash is caught
            return Exit(Ending.CRASHED, error)
        except anyio.get_cancelled_exc_class():
            if self._scope.cancel_called:
                raise
            # nobody of ours did that: an asyncio host or a library cancelled the task natively
            return Exit(Ending.CRASHED, CancelledByStranger(f"the task of {self.path} was cancelled from outside"))
        return Exit(Ending.RETURNED)

    def _judged(self, exit: Exit) -> Exit:
        if self._timed_out and exit.ending is not Ending.CRASHED:
            return Exit(Ending.CRASHED, StartTimeout(f"{self.path} was not ready within {self._times.start:g} s"))
        return exit

    def _ready(self) -> None:
        if self.is_ready or self._ended.is_set():
            return
        self.is_ready = True
        self._started_or_ended.set()
        self._owner.ready()

    async def _guard_start(self, limit_sec: float) -> None:
        with anyio.move_on_after(limit_sec):
            await self._started_or_ended.wait()
            return
        if self._guarded:
            return
        self._guarded = self._timed_out = True
        await self._enforce()

    async def _guard_end(self) -> None:
        with self._grace:
            with anyio.move_on_after(self._times.shutdown):
                await self._ended.wait()
                return
        await self._enforce()

    async def _enforce(self) -> None:
        self._scope.cancel()
        with anyio.move_on_after(self._times.kill):
            await self._ended.wait()
            return
        self._owner.stuck()
