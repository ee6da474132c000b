"""Flows executed in warm child processes, one run at a time each: a run that crashes takes nobody with it."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import anyio

from pyoco_runtime.engine.child_process import ChildProcess, ProcessExecution, Stage
from pyoco_runtime.engine.frames import SetUp
from pyoco_runtime.errors import RunnerUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.offer import UNKNOWN, Offer
from pyoco_runtime.model.progress import Progress

FIRST_BACKOFF_SEC = 0.5
MOST_BACKOFF_SEC = 30.0  # a mended resolver is noticed within half a minute

_log = logging.getLogger("pyoco_runtime.engine")


class ProcessRunner:
    """A pool of children. Runs on asyncio.

    The pool outlives `keep_warm`: without it children still execute and come back, only missing ones stay missing.
    """

    def __init__(
        self,
        resolver_spec: str | None,
        places: int,
        *,
        overlay: Callable[[], tuple[Path, ...]] = lambda: (),
        callable_allow: tuple[str, ...] = (),
        cwd: Path | None = None,
    ) -> None:
        """`overlay` gives directories that a new child puts before all others on its sys.path."""
        self._resolver_spec = resolver_spec
        self._size = places
        self._overlay = overlay
        self._callable_allow = callable_allow
        self._cwd = cwd
        self._generation = 0
        self._children: set[ChildProcess] = set()
        self._waiting: deque[asyncio.Future[ChildProcess]] = deque()
        self._promised: set[ChildProcess] = set()
        self._changed = anyio.Event()
        self._problem: str | None = None
        self._failed_at = 0.0
        self._backoff_sec = 0.0
        self._is_closed = False
        self._scout: ChildProcess | None = None
        self._scouted: int | None = None
        """The generation whose scout has been sent."""
        self._tell: Callable[[Offer], None] = lambda offer: None

    def tell_offer(self, tell: Callable[[Offer], None]) -> None:
        """Have `tell` called whenever it is known what new children can run; before that nothing is known."""
        self._tell = tell

    @property
    def pids(self) -> frozenset[int]:
        """The processes that there are."""
        return frozenset(child.pid for child in self._children)

    async def begin(self, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> ProcessExecution:
        """Wait for an idle child, and begin. Raises RunnerUnavailable if none can be started."""
        while True:
            child = self._free() if not self._waiting else None
            if child is None:
                child = await self._promised_child()
            if child.is_fit():  # it may have died, or been replaced, since it was promised
                return child.begin(job, attempt, report)

    async def keep_warm(self) -> None:
        """See to it, for ever, that there are as many children as places; may be cancelled and called again."""
        while True:
            changed = self._changed
            wait_sec = await self._start_missing()
            await self._send_scout()
            with anyio.move_on_after(wait_sec):
                await changed.wait()

    def replace(self) -> None:
        """Have every run that begins from now on executed by a new child."""
        self._generation += 1
        self._problem = None  # what has changed may have mended it
        for child in self._in(Stage.IDLE, Stage.STARTING):
            child.ask_to_end()
        if self._scout is not None:
            self._scout.ask_to_end()
        self._note_change()

    async def close(self) -> None:
        """End all children, also those that execute, and reap them; nothing can begin any more."""
        self._is_closed = True
        self._refuse_waiting("the runner is closed")
        for child in self._everybody():
            child.ask_to_end()
        try:
            while self._everybody():
                await self._changed.wait()
        finally:
            for child in self._everybody():  # cancelled: no time to be kind
                child.kill_now()

    # -- beginning -----------------------------------------------------------------------------------------------------

    async def _promised_child(self) -> ChildProcess:
        if self._is_closed:
            raise RunnerUnavailable("the runner is closed")
        if self._problem is not None and not self._alive():
            raise RunnerUnavailable(self._problem)
        turn: asyncio.Future[ChildProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            child = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._promised.discard(turn.result())
            elif turn in self._waiting:
                self._waiting.remove(turn)
            self._serve()
            raise
        self._promised.discard(child)
        return child

    def _serve(self) -> None:
        """Promise free children to those who wait, the longest first."""
        while self._waiting and (child := self._free()) is not None:
            turn = self._waiting.popleft()
            if not turn.done():  # else it is just being cancelled
                self._promised.add(child)
                turn.set_result(child)

    def _free(self) -> ChildProcess | None:
        return next((child for child in self._in(Stage.IDLE) if child not in self._promised), None)

    def _refuse_waiting(self, problem: str) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(RunnerUnavailable(problem))

    # -- keeping them ----------------------------------------------------------------------------------------------

    async def _start_missing(self) -> float:
        """Start what is missing, and say after how many seconds to look again at the latest."""
        missing = 0 if self._is_closed else self._size - len(self._alive())
        if missing > 0 and self._problem is not None:
            wait_sec = self._failed_at + self._backoff_sec - time.monotonic()
            if wait_sec > 0:
                return wait_sec
            missing = 1  # one is enough to see whether it goes better now
        for _ in range(missing):
            await self._start_one()
        return math.inf

    async def _start_one(self) -> None:
        child = ChildProcess(self._child_changed, self._generation)
        self._children.add(child)
        try:
            await child.start(self._set_up(), self._cwd)
        except OSError as error:
            self._children.discard(child)
            child.problem = f"no process to execute flows can be started: {error}"
            self._start_failed(child)
        except BaseException:
            self._children.discard(child)
            raise

    def _set_up(self, *, is_scout: bool = False) -> SetUp:
        overlay = tuple(str(path) for path in self._overlay())
        return SetUp(self._resolver_spec, overlay, tuple(sys.path), self._callable_allow, is_scout)

    def _child_changed(self, child: ChildProcess, before: Stage) -> None:
        match child.stage:
            case Stage.IDLE if self._is_closed or child.generation != self._generation:
                child.ask_to_end()
            case Stage.IDLE:
                if before is Stage.STARTING:
                    self._problem, self._backoff_sec = None, 0.0
                    self._note_change()  # a scout may go now
                self._serve()
            case Stage.GONE:
                self._children.discard(child)
                if child.generation == self._generation and not (child.was_ready or child.was_asked):
                    self._start_failed(child)
                elif not child.was_asked:
                    _log.warning("a process that executes flows died and is replaced: %s", child.cause_of_death)
                self._note_change()
            case Stage.STARTING | Stage.BUSY | Stage.ENDING:
                pass
        if self._problem is not None and not self._alive():
            self._refuse_waiting(self._problem)

    # -- finding out what they can run -----------------------------------------------------------------------------

    async def _send_scout(self) -> None:
        """Once a generation, after a child of it was ready: a resolver that cannot be imported is told of there.

        A process of its own, that ends thereafter: to find the tasks means to import every plug-in, and what these
        cost in time and memory is not for children that may never need them.
        """
        is_proven = any(child.was_ready and child.generation == self._generation for child in self._children)
        if self._is_closed or self._scout is not None or self._scouted == self._generation or not is_proven:
            return
        self._scouted = self._generation
        self._scout = ChildProcess(self._scout_changed, self._generation)
        try:
            await self._scout.start(self._set_up(is_scout=True), self._cwd)
        except OSError as error:
            self._scout = None
            _log.warning("it is not known what this worker can run: %s", error)
        except BaseException:
            self._scout = self._scouted = None
            raise

    def _scout_changed(self, scout: ChildProcess, before: Stage) -> None:
        if scout.stage is not Stage.GONE:
            return
        self._scout = None
        if not self._is_closed and scout.generation == self._generation:
            if scout.found is None:
                _log.warning("it is not known what this worker can run: %s", scout.problem)
            self._tell(scout.found or UNKNOWN)
        self._note_change()

    def _everybody(self) -> tuple[ChildProcess, ...]:
        return (*self._children, *((self._scout,) if self._scout else ()))

    def _start_failed(self, child: ChildProcess) -> None:
        _log.error("%s", child.problem, extra={"err_id": RunnerUnavailable(child.problem).err_id})
        if child.started_at >= self._failed_at:  # else it was started together with one that has failed already
            self._backoff_sec = min(MOST_BACKOFF_SEC, max(FIRST_BACKOFF_SEC, self._backoff_sec * 2))
        self._failed_at = time.monotonic()
        self._problem = child.problem
        if not self._alive():
            self._refuse_waiting(child.problem)
        self._note_change()

    def _alive(self) -> list[ChildProcess]:
        return self._in(Stage.STARTING, Stage.IDLE, Stage.BUSY)

    def _in(self, *stages: Stage) -> list[ChildProcess]:
        return [child for child in self._children if child.stage in stages]

    def _note_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
