"""One warm child process, as its runner sees it."""

from __future__ import annotations

import asyncio
import enum
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from pyoco_runtime.engine.frames import Cancel, Execute, Found, Frame, Ready, Report, SetUp, Unfit, Unpacker, packed
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.offer import Offer
from pyoco_runtime.model.progress import (
    Ending,
    FlowEnded,
    Killed,
    Progress,
    Raised,
    TaskEnded,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus

START_SEC = 60.0  # importing a large library from a cold disk takes tens of seconds
ASKED_SEC = 2.0  # an idle child ends within milliseconds
FORCED_SEC = 2.0  # what the kernel takes to end a process, unless it hangs in a driver
_STDERR = 2
_REAP_SEC = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # a process that has closed its files is about to end


class Stage(enum.Enum):
    """Where a child is in its life."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    ENDING = "ending"
    """Told to end, or seen to; it takes no orders."""
    GONE = "gone"
    """Ended and reaped."""


class ProcessExecution:
    """One flow in one child."""

    def __init__(self, child: ChildProcess, number: int, report: Callable[[Progress], None]) -> None:
        self._child = child
        self._number = number
        self._report = report
        self._running: dict[str, float] = {}
        self.is_over = False
        self.is_killed = False

    def cancel(self) -> None:
        """Ask it to stop; it may take its time, or not listen."""
        if not self.is_over:
            self._child.send(Cancel(self._number))

    def kill(self) -> None:
        """End its process; it is reported as killed once that is gone, unless it has ended by itself."""
        if not self.is_over:
            self.is_killed = True
            self._child.was_asked = True
            self._child.kill()

    def report(self, event: Progress) -> None:
        """Pass on what the child says."""
        match event:
            case TaskStarted():
                self._running[event.task] = event.at
            case TaskEnded():
                self._running.pop(event.task, None)
            case FlowEnded():
                self.is_over = True
        self._report(event)

    def end(self, ending: Ending, at: float) -> None:
        """The child has ended before the flow."""
        if isinstance(ending, Raised):
            for task, started_at in tuple(self._running.items()):
                duration_ms = (at - started_at) * 1000
                self.report(TaskEnded(task, TaskStatus.FAILED, started_at, at, duration_ms, error=ending.error))
        self.report(FlowEnded(ending, at))


class ChildProcess(asyncio.Protocol):
    """Starts, orders about, ends and reaps one process, all in callbacks of the event loop: it needs no task."""

    def __init__(self, on_change: Callable[[ChildProcess, Stage], None], generation: int) -> None:
        """`on_change` is called after every change of the stage, with the stage before."""
        self.generation = generation
        self.problem = ""
        """Why it ended before it was ready."""
        self.cause_of_death = ""
        self.found: Offer | None = None
        """What it has found, if it was sent as a scout."""
        self.was_ready = False
        self.was_asked = False
        """It was we who ended it."""
        self.stage = Stage.STARTING
        self.started_at = time.monotonic()
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unpacker = Unpacker()
        self._execution: ProcessExecution | None = None
        self._number = 0
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def is_fit(self) -> bool:
        """It is idle, and lives: its death may not have been heard of yet, and would be taken for the run's."""
        if self.stage is Stage.IDLE and self._process is not None and self._process.poll() is not None:
            self._become(Stage.ENDING)  # the rest follows when the connection is lost
        return self.stage is Stage.IDLE

    async def start(self, set_up: SetUp, cwd: Path | None) -> None:
        """Start the process; it becomes IDLE by itself, or GONE. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _spawn(theirs, cwd, set_up)
            transport, _ = await self._loop.create_unix_connection(lambda: self, sock=ours)
        except BaseException:
            self.stage = Stage.GONE
            ours.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            raise
        self._transport = transport
        if self.stage is not Stage.STARTING:  # told to end meanwhile
            transport.abort()
            return
        self._set_alarm(START_SEC, self._too_slow)
        self.send(set_up)

    def begin(self, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> ProcessExecution:
        """Have an idle child execute a job."""
        assert self.stage is Stage.IDLE
        self._number += 1
        self._execution = ProcessExecution(self, self._number, report)
        self._become(Stage.BUSY)
        self.send(Execute(self._number, job, attempt))
        return self._execution

    def send(self, frame: Frame) -> None:
        """Send a frame, unless it has ended."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(packed(frame))

    def ask_to_end(self) -> None:
        """Close the connection: it ends at once, whatever it does; kill it if that takes too long."""
        if self.stage in (Stage.ENDING, Stage.GONE):
            return
        if self._execution is not None:
            self._execution.is_killed = True
        self.was_asked = True
        self._become(Stage.ENDING)
        if self._transport is not None:
            self._transport.abort()
        self._set_alarm(ASKED_SEC, self.kill)

    def kill(self) -> None:
        """End it, and what it has started, by force."""
        if self._process is None or self.stage is Stage.GONE:
            return
        self._kill_group()
        if self.stage is not Stage.ENDING:
            self._become(Stage.ENDING)
        self._set_alarm(FORCED_SEC, self._give_up_waiting)

    def kill_now(self) -> None:
        """End it by force and wait for it in this thread; the last resort when the loop is about to go."""
        if self._process is not None and self.stage is not Stage.GONE:
            self._kill_group()
            self._process.wait()
            self._gone()

    # -- what the connection says ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """It says something."""
        for frame in self._unpacker.feed(data):
            self._received(frame)

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended, or is about to."""
        if self.stage is not Stage.GONE:
            self._reap(0)

    def _received(self, frame: Frame) -> None:
        match frame:
            case Report():
                self._reported(frame.events)
            case Ready():
                self._set_alarm(None)
                self.was_ready = True
                if self.stage is Stage.STARTING:
                    self._become(Stage.IDLE)
            case Unfit():
                self.problem = frame.problem
            case Found():
                self.found = frame.offer
            case SetUp() | Execute() | Cancel():
                raise AssertionError(f"a child gives no orders: {frame}")
            case _:
                assert_never(frame)

    def _reported(self, events: tuple[Progress, ...]) -> None:
        execution = self._execution
        for event in events:
            if execution is None or execution.is_over:
                return  # closed meanwhile
            if isinstance(event, FlowEnded):
                self._execution = None
                if self.stage is Stage.BUSY:
                    self._become(Stage.IDLE)
            execution.report(event)

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _reap(self, tries: int) -> None:
        assert self._process is not None
        if self.stage is not Stage.ENDING:
            self._become(Stage.ENDING)
            self._kill_group()  # it did not end as asked: what it had started must not outlive its run
        if self.stage is Stage.GONE:
            return
        if self._process.poll() is None:
            self._loop.call_later(_REAP_SEC[min(tries, len(_REAP_SEC) - 1)], self._reap, tries + 1)
        else:
            self._gone()

    def _gone(self) -> None:
        assert self._process is not None
        if self.stage is Stage.GONE:
            return
        self._set_alarm(None)
        how = self.cause_of_death = _cause_of_death(self._process.returncode)
        if not self.problem:
            self.problem = f"the process that executes flows died while it started: {how}"
        self._become(Stage.GONE)
        self._end_execution(how)

    def _end_execution(self, how: str) -> None:
        execution, self._execution = self._execution, None
        if execution is not None and not execution.is_over:
            raised = Raised(f"the process of this run died: {how}")
            execution.end(Killed() if execution.is_killed else raised, time.time())

    def _kill_group(self) -> None:
        """Only before it is reaped: afterwards its number may be another's."""
        assert self._process is not None
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # it is a zombie, and macOS says the latter
                return

    def _too_slow(self) -> None:
        self.problem = f"the process that executes flows was not ready after {START_SEC:.0f} s: does the import hang?"
        self.kill()

    def _give_up_waiting(self) -> None:
        """It hangs in the kernel. Its run is over all the same; the process is reaped whenever it ends."""
        if self._transport is not None:
            self._transport.abort()
        self._end_execution("it was killed")

    def _set_alarm(self, after_sec: float | None, what: Callable[[], None] | None = None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if after_sec is None or what is None else self._loop.call_later(after_sec, what)

    def _become(self, stage: Stage) -> None:
        before, self.stage = self.stage, stage
        self._on_change(self, before)


def _spawn(connection: socket.socket, cwd: Path | None, set_up: SetUp) -> subprocess.Popen[bytes]:
    role = ["scout"] if set_up.is_scout else []  # for whoever looks at the list of processes
    return subprocess.Popen(
        [sys.executable, "-m", "pyoco_runtime.engine.child", str(connection.fileno()), *role],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,  # what user code prints is seen there; our own stdout carries the log, a JSON object a line
        pass_fds=(connection.fileno(),),
        cwd=cwd,
        start_new_session=True,  # a Ctrl-C is for us, and we can end it together with what it has started
    )


def _cause_of_death(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}; did user code call os._exit()?"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    hint = "; was the machine out of memory?" if -code == signal.SIGKILL else ""
    return f"killed by signal {-code} ({name}){hint}"
