"""A flow runner without flows: it plays scripts in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, frozen

from pyoco_runtime.errors import RunnerUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
    FlowNotFound,
    FlowStarted,
    Killed,
    Progress,
    Raised,
    Stopped,
    TaskEnded,
    TaskLogged,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus
from pyoco_runtime.ports import Clock
from pyoco_runtime.testing.memory_jetstream import virtual_clock

HAIR_SEC = 1e-9  # a timer may ring that much early, as asyncio's do


@frozen
class Sleep:
    """Work for a while; math.inf is a flow that hangs."""

    sec: float


@frozen
class StartTask:
    """A task begins."""

    task: str


@frozen
class EndTask:
    """A task is over."""

    task: str
    status: TaskStatus = TaskStatus.SUCCEEDED
    output: Any = None
    error: str | None = None


@frozen
class Print:
    """A task prints."""

    task: str
    text: str
    stream: str = "stdout"


@frozen
class Fail:
    """The flow raises."""

    error: str = "ValueError: boom"


@frozen
class Crash:
    """The process that executes the flow dies."""


@frozen
class IgnoreCancel:
    """From here on the flow does not listen when it is asked to stop."""


@frozen
class NotFound:
    """The flow is not there; only as the first step."""


Step = Sleep | StartTask | EndTask | Print | Fail | Crash | IgnoreCancel | NotFound
Script = Sequence[Step] | Callable[[Job], Sequence[Step]]

CRASHED = Raised("the process that executed the flow died")


@define
class Executed:
    """One execution, for tests to look at; times are timestamps."""

    run_id: str
    attempt: Attempt
    flow_name: str
    began_at: float
    ended_at: float | None = None
    ending: Ending | None = None


class FakeRunner:
    """Implements ports.FlowRunner. Somebody must run `serve`: nothing happens to an execution without it."""

    def __init__(
        self,
        scripts: Mapping[str, Script],
        *,
        places: int = 1,
        clock: Clock = virtual_clock,
        cancel_sec: float = 0.0,
        kill_sec: float = 0.003,
    ) -> None:
        """A flow without a script is not found; `cancel_sec` and `kill_sec` are how long it takes to heed those."""
        self.executions: list[Executed] = []
        self.refuse_begin = 0
        self._scripts = scripts
        self._clock = clock
        self._cancel_sec = cancel_sec
        self._kill_sec = kill_sec
        self._places = anyio.Semaphore(places, max_value=places)
        self._running: list[FakeExecution] = []
        self._bell = anyio.Event()

    @property
    def running(self) -> tuple[Executed, ...]:
        """Those that have not ended."""
        return tuple(each.executed for each in self._running)

    async def begin(self, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> FakeExecution:
        await self._places.acquire()
        if self.refuse_begin > 0:
            self.refuse_begin -= 1
            self._places.release()
            raise RunnerUnavailable("no process for the flow could be started")
        executed = Executed(job.run_id, attempt, job.flow_name, self._clock())
        made = FakeExecution(executed, self._steps(job), report, self)
        self.executions.append(executed)
        self._running.append(made)
        self._bell.set()
        return made

    async def serve(self) -> None:
        """Play all executions until cancelled; those under way then end as if their process had died."""
        try:
            while True:
                self._bell = anyio.Event()
                for each in tuple(self._running):
                    each.play()
                await checkpoint()
                with anyio.CancelScope(deadline=min((each.due for each in self._running), default=math.inf)):
                    await self._bell.wait()
        finally:
            for each in tuple(self._running):
                each.end(CRASHED)

    def _steps(self, job: Job) -> tuple[Step, ...]:
        script = self._scripts.get(job.flow_name, (NotFound(),))
        return tuple(script(job) if callable(script) else script)

    # -- for the executions --------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Something has changed about an execution."""
        self._bell.set()

    def ended(self, execution: FakeExecution) -> None:
        """Its place is free."""
        self._running.remove(execution)
        self._places.release()

    @property
    def clock(self) -> Clock:
        """Gives the timestamps of what is reported."""
        return self._clock

    @property
    def heeds_sec(self) -> tuple[float, float]:
        """How long it takes to heed a cancel, and a kill."""
        return self._cancel_sec, self._kill_sec


class FakeExecution:
    """Implements ports.Execution. Reports come out of the runner's `serve`, never out of `cancel` or `kill`."""

    def __init__(
        self, executed: Executed, steps: tuple[Step, ...], report: Callable[[Progress], None], runner: FakeRunner
    ) -> None:
        self.executed = executed
        self._steps = _Steps(steps)
        self._report = report
        self._runner = runner
        self._wakes_at = anyio.current_time()
        self._stops_at = math.inf
        self._dies_at = math.inf
        self._listens = True
        self._open: dict[str, float] = {}

    @property
    def due(self) -> float:
        """When it has something to do."""
        return min(self._wakes_at, self._dies_at, self._stops_at if self._listens else math.inf)

    def cancel(self) -> None:
        self._stops_at = min(self._stops_at, anyio.current_time() + self._runner.heeds_sec[0])
        self._runner.look()

    def kill(self) -> None:
        self._dies_at = min(self._dies_at, anyio.current_time() + self._runner.heeds_sec[1])
        self._runner.look()

    def play(self) -> None:
        """Do everything that is due."""
        now = anyio.current_time() + HAIR_SEC
        while self.executed.ending is None and self.due <= now:
            if self._dies_at <= now:
                self.end(Killed())
            elif self._listens and self._stops_at <= now:
                self._stop()
            elif self._steps.is_new:
                self._begin()
            elif (step := self._steps.next()) is None:
                self.end(Completed())
            else:
                self._do(step)

    def end(self, ending: Ending) -> None:
        """Report the end, once; the place is free before anybody hears of it."""
        if self.executed.ending is None:
            self.executed.ending = ending
            self.executed.ended_at = self._runner.clock()
            self._runner.ended(self)
            self._report(FlowEnded(ending, self.executed.ended_at))

    def _stop(self) -> None:
        for task in tuple(self._open):
            self._end_task(EndTask(task, TaskStatus.CANCELLED))
        self.end(Stopped())

    def _begin(self) -> None:
        tasks = self._steps.begin()
        if tasks is not None:
            self._report(FlowStarted(tasks))

    def _do(self, step: Step) -> None:
        match step:
            case NotFound():
                self.end(FlowNotFound(f"flow_not_found: {self.executed.flow_name}"))
            case Sleep(sec):
                self._wakes_at = anyio.current_time() + sec
            case StartTask(task):
                self._open[task] = self._runner.clock()
                self._report(TaskStarted(task, self._open[task]))
            case EndTask():
                self._end_task(step)
            case Print(task, text, stream):
                self._report(TaskLogged(task, stream, text))
            case Fail(error):
                self.end(Raised(error))
            case Crash():
                self.end(CRASHED)
            case IgnoreCancel():
                self._listens = False
            case _:
                assert_never(step)

    def _end_task(self, step: EndTask) -> None:
        ended_at = self._runner.clock()
        started_at = self._open.pop(step.task, None)
        took_ms = None if started_at is None else (ended_at - started_at) * 1000
        self._report(
            TaskEnded(step.task, step.status, started_at, ended_at, took_ms, error=step.error, output=step.output)
        )


class _Steps:
    """A script and how far it has got."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.is_new = True
        self._steps = steps
        self._done = 0

    def begin(self) -> tuple[str, ...] | None:
        """The tasks of the flow; None if it is not found."""
        self.is_new = False
        if self._steps and isinstance(self._steps[0], NotFound):
            return None
        return tuple(dict.fromkeys(step.task for step in self._steps if isinstance(step, StartTask)))

    def next(self) -> Step | None:
        if self._done == len(self._steps):
            return None
        self._done += 1
        return self._steps[self._done - 1]
