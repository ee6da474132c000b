"""Flows executed in threads of this process: for embedding, where the resolver is a function of the host."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from copy import deepcopy

import anyio
import anyio.lowlevel

from pyoco_runtime.engine.driver import Driver, FindFlow
from pyoco_runtime.engine.finder import Finder
from pyoco_runtime.engine.inventory import flows_of
from pyoco_runtime.engine.outbox import Outbox
from pyoco_runtime.engine.resolver import Resolver
from pyoco_runtime.errors import RunnerUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.offer import Offer, announced
from pyoco_runtime.model.progress import FlowEnded, Killed, Progress

FLUSH_SEC = 0.02  # a log line is seen soon enough, and a flow that ends sooner is told of in one go

_log = logging.getLogger("pyoco_runtime.engine")


class ThreadRunner:
    """Executes each run in a thread of its own, at most `places` at a time. Runs on asyncio."""

    def __init__(
        self,
        resolver: Resolver,
        places: int,
        *,
        callable_allow: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        flows: tuple[str, ...] | None = None,
    ) -> None:
        """`flows` are the names of those that the resolver has, if it does not say so itself."""
        # The tasks of plug-ins stay unknown: they are imported into the host's process only if a flow.yaml needs them.
        self.offer = Offer(announced(flows) if flows is not None else flows_of(resolver), None)
        self._find = Finder(resolver, callable_allow)
        self._places = anyio.Semaphore(places, fast_acquire=True)
        self._clock = clock
        self._executing: set[ThreadExecution] = set()
        self._is_closed = False

    async def begin(self, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> ThreadExecution:
        """Wait for a free place, and begin. Raises RunnerUnavailable after `close`."""
        await self._places.acquire()
        if self._is_closed:
            self._places.release()
            raise RunnerUnavailable("the runner is closed")
        execution = ThreadExecution(job, attempt, report, self._ended, self._clock)
        self._executing.add(execution)
        execution.start(self._find)
        return execution

    async def close(self) -> None:
        """Take no more runs; those that still execute are told to stop, and abandoned."""
        self._is_closed = True
        for execution in tuple(self._executing):
            execution.cancel()
            execution.kill()
        await anyio.lowlevel.checkpoint()  # their last reports are on their way

    def _ended(self, execution: ThreadExecution) -> None:
        self._executing.discard(execution)
        self._places.release()


class ThreadExecution:
    """One flow in one thread."""

    def __init__(
        self,
        job: Job,
        attempt: Attempt,
        report: Callable[[Progress], None],
        on_thread_end: Callable[[ThreadExecution], None],
        clock: Callable[[], float],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # or anyio does not know in our callbacks on which loop it is
        self._job = job
        self._report = report
        self._on_thread_end = on_thread_end
        self._clock = clock
        self._outbox = Outbox(self._wake)
        # A copy: what the flow does to its params is its own affair.
        self._driver = Driver(job, attempt, deepcopy(dict(job.params)), self._outbox)
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self, find: FindFlow) -> None:
        """Begin in a new thread."""
        # A plain thread: pools have limits of their own. A daemon: an abandoned one must not keep the program alive.
        # An empty context: the loop's variables mean nothing there.
        context = contextvars.Context()
        name = f"run:{self._job.run_id}"
        threading.Thread(target=context.run, args=(self._execute, find), name=name, daemon=True).start()

    def cancel(self) -> None:
        """Ask it to stop; it may take its time, or not listen."""
        self._driver.stop()

    def kill(self) -> None:
        """Report it as killed and abandon its thread, which cannot be ended; its place is free when it has ended."""
        if not self._is_over:
            self._driver.stop()  # it may listen all the same
            self._loop.call_soon(self._abandon)

    def _execute(self, find: FindFlow) -> None:
        try:
            self._driver.execute(find)
        finally:
            self._tell_loop(self._finish)

    def _wake(self) -> None:
        self._tell_loop(self._flush_soon)

    def _tell_loop(self, what: Callable[[], None]) -> None:
        if self._loop.is_closed():  # the host has gone on without us
            return
        try:
            self._loop.call_soon_threadsafe(what, context=self._context)
        except RuntimeError:  # it was closed at this very moment
            return

    def _flush_soon(self) -> None:
        self._timer = self._loop.call_later(FLUSH_SEC, self._flush)

    def _flush(self) -> None:
        for event in self._outbox.fetch():
            if not self._is_over:  # else it is abandoned, and nobody listens any more
                self._is_over = isinstance(event, FlowEnded)
                self._report(event)

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()  # or a finished run would stay in memory until it is due
        self._flush()
        self._on_thread_end(self)

    def _abandon(self) -> None:
        self._flush()
        if not self._is_over:
            self._is_over = True
            _log.warning("run %s was killed, but its thread still runs: threads cannot be ended", self._job.run_id)
            self._report(FlowEnded(Killed(), self._clock()))
