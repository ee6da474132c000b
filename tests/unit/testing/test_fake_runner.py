"""The flow runner without flows."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

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
from pyoco_runtime.ports import FlowRunner
from pyoco_runtime.testing.fake_runner import (
    CRASHED,
    Crash,
    EndTask,
    Fail,
    FakeRunner,
    IgnoreCancel,
    Print,
    Script,
    Sleep,
    StartTask,
)
from pyoco_runtime.testing.memory_jetstream import EPOCH

SCRIPTS: dict[str, Script] = {
    "ok": (StartTask("t"), Print("t", "hello"), Sleep(2), EndTask("t", output=7), StartTask("u"), EndTask("u")),
    "empty": (),
    "fails": (Sleep(1), Fail("ValueError: no")),
    "dies": (Sleep(1), Crash()),
    "hangs": (StartTask("t"), Sleep(math.inf)),
    "deaf": (IgnoreCancel(), Sleep(100)),
    "told": lambda job: [Sleep(job.params["sec"])],
}


def job(flow_name: str, run_id: str = "r-1", **params: object) -> Job:
    return Job(run_id=run_id, flow_name=flow_name, tag="default", submitted_at=0.0, params=params)


class Reports:
    """Collects what is reported, and lets a test wait for the end."""

    def __init__(self) -> None:
        self.all: list[Progress] = []
        self.over = anyio.Event()

    def __call__(self, progress: Progress) -> None:
        assert not self.over.is_set(), f"{progress} came after the end"
        self.all.append(progress)
        if isinstance(progress, FlowEnded):
            self.over.set()

    @property
    def ending(self) -> Ending:
        last = self.all[-1]
        assert isinstance(last, FlowEnded)
        return last.ending


@asynccontextmanager
async def served(runner: FakeRunner) -> AsyncIterator[FlowRunner]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.serve)
        yield runner
        tasks.cancel_scope.cancel()


async def test_a_script_is_played_in_time() -> None:
    """Every report in order, with the times of the clock; the record says how it went."""
    runner, reports = FakeRunner(SCRIPTS), Reports()
    async with served(runner) as port:
        await port.begin(job("ok"), Attempt(1, 1), reports)
        assert [each.run_id for each in runner.running] == ["r-1"]
        await reports.over.wait()
    assert reports.all == [
        FlowStarted(("t", "u")),
        TaskStarted("t", EPOCH),
        TaskLogged("t", "stdout", "hello"),
        TaskEnded("t", TaskStatus.SUCCEEDED, EPOCH, EPOCH + 2, 2000.0, output=7),
        TaskStarted("u", EPOCH + 2),
        TaskEnded("u", TaskStatus.SUCCEEDED, EPOCH + 2, EPOCH + 2, 0.0),
        FlowEnded(Completed(), EPOCH + 2),
    ]
    (executed,) = runner.executions
    assert (executed.began_at, executed.ended_at, executed.ending) == (EPOCH, EPOCH + 2, Completed())
    assert executed.attempt == Attempt(1, 1)


@pytest.mark.parametrize(
    ("flow", "ending", "reports_before"),
    [
        ("empty", Completed(), 1),
        ("fails", Raised("ValueError: no"), 1),
        ("dies", CRASHED, 1),
        ("nowhere", FlowNotFound("flow_not_found: nowhere"), 0),
    ],
)
async def test_endings(flow: str, ending: Ending, reports_before: int) -> None:
    """A flow that is not found never started."""
    runner, reports = FakeRunner(SCRIPTS), Reports()
    async with served(runner) as port:
        await port.begin(job(flow), Attempt(1, 1), reports)
        await reports.over.wait()
    assert reports.ending == ending
    assert len(reports.all) == reports_before + 1


async def test_a_cancel_stops_the_flow_and_its_tasks() -> None:
    """After the time that it takes to heed it."""
    runner, reports = FakeRunner(SCRIPTS, cancel_sec=5.0), Reports()
    async with served(runner) as port:
        execution = await port.begin(job("hangs"), Attempt(1, 1), reports)
        await anyio.sleep(1)
        execution.cancel()
        execution.cancel()
        await reports.over.wait()
    assert reports.ending == Stopped()
    ended = reports.all[-2]
    assert isinstance(ended, TaskEnded)
    assert (ended.status, ended.ended_at) == (TaskStatus.CANCELLED, EPOCH + 6)


async def test_a_flow_may_end_before_it_heeds_a_cancel() -> None:
    """Then it has completed, and nobody stopped it."""
    runner, reports = FakeRunner(SCRIPTS, cancel_sec=5.0), Reports()
    async with served(runner) as port:
        execution = await port.begin(job("ok"), Attempt(1, 1), reports)
        execution.cancel()
        await reports.over.wait()
        execution.kill()
        await anyio.sleep(10)
    assert reports.ending == Completed()


async def test_a_deaf_flow_can_be_killed() -> None:
    """A cancel does nothing, a kill ends it."""
    runner, reports = FakeRunner(SCRIPTS), Reports()
    async with served(runner) as port:
        execution = await port.begin(job("deaf"), Attempt(1, 1), reports)
        await anyio.sleep(1)
        execution.cancel()
        await anyio.sleep(10)
        assert not reports.over.is_set()
        execution.kill()
        await reports.over.wait()
    assert reports.ending == Killed()
    assert 11 < anyio.current_time() < 12


async def test_begin_waits_for_a_free_place() -> None:
    """As many at once as there are places; a cancelled begin has begun nothing and takes no place."""
    runner = FakeRunner(SCRIPTS, places=2)
    async with served(runner) as port:
        reports = [Reports() for _ in range(4)]
        for number in (0, 1):
            await port.begin(job("told", f"r-{number}", sec=10.0), Attempt(1, 1), reports[number])
        with anyio.move_on_after(3) as waited:
            await port.begin(job("told", "r-2", sec=10.0), Attempt(1, 1), reports[2])
        assert waited.cancelled_caught
        await port.begin(job("told", "r-3", sec=1.0), Attempt(1, 1), reports[3])
        assert round(anyio.current_time()) == 10
        await reports[3].over.wait()
    assert [each.run_id for each in runner.executions] == ["r-0", "r-1", "r-3"]


async def test_begin_can_be_refused() -> None:
    """The place is free afterwards."""
    runner, reports = FakeRunner(SCRIPTS), Reports()
    runner.refuse_begin = 1
    async with served(runner) as port:
        with pytest.raises(RunnerUnavailable):
            await port.begin(job("empty"), Attempt(1, 1), reports)
        await port.begin(job("empty"), Attempt(1, 1), reports)
        await reports.over.wait()


async def test_executions_end_with_the_runner() -> None:
    """As if their process had died; a new serve begins with free places."""
    runner, first, second = FakeRunner(SCRIPTS), Reports(), Reports()
    async with served(runner) as port:
        await port.begin(job("hangs"), Attempt(1, 1), first)
    assert first.ending == CRASHED
    async with served(runner) as port:
        await port.begin(job("ok"), Attempt(1, 2), second)
        await second.over.wait()
    assert second.ending == Completed()


async def test_a_report_may_cancel_or_kill() -> None:
    """It is called in the loop and may call back."""
    runner, reports = FakeRunner(SCRIPTS), Reports()
    stop: list[Callable[[], None]] = []

    def report(progress: Progress) -> None:
        reports(progress)
        if isinstance(progress, TaskStarted):
            stop[0]()

    async with served(runner) as port:
        stop.append((await port.begin(job("hangs"), Attempt(1, 1), report)).kill)
        await reports.over.wait()
    assert reports.ending == Killed()
