"""The runners with real threads and real child processes: overlapping runs, crashes, cancels, clean ends."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve

from pyoco_runtime.engine import child_process
from pyoco_runtime.engine.process_runner import ProcessRunner
from pyoco_runtime.engine.resolver import load_resolver
from pyoco_runtime.engine.thread_runner import ThreadRunner
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
from pyoco_runtime.ports import Execution, FlowRunner

FLOWS = """
import ctypes, os, signal, subprocess, sys, threading, time
from pyoco import task
from pyoco.core.models import Flow

@task
def noop(): return os.getpid()

@task
def talks(word):
    for number in range(50):
        print(word, number)
        print(word, "!", file=sys.stderr)
        time.sleep(0)
    return word

@task
def mumbles(word):
    for number in range(50):
        print("m" + word, number)
        time.sleep(0)

@task
def says_and_waits(ctx):
    print("here")
    while not ctx.is_cancelled:
        time.sleep(0.005)
    return "stopped"

@task
def quiet(ctx):
    time.sleep(1.3)  # longer than the child's watcher stays awake
    print("after a while")
    time.sleep(1.3)
    print("at last")
    while not ctx.is_cancelled:
        time.sleep(0.005)

@task
def deaf():
    print("deaf", os.getpid())
    end = time.monotonic() + 60
    while time.monotonic() < end and not os.path.exists("wake_up"):
        time.sleep(0.005)

@task
def with_child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print("child", process.pid)
    time.sleep(60)

@task
def forks():
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    print("child", pid)
    os._exit(4)

@task
def exits(): os._exit(3)

@task
def kills_itself(): os.kill(os.getpid(), signal.SIGKILL)

@task
def segfaults():
    import faulthandler
    faulthandler.disable()
    ctypes.string_at(0)

@task
def closes_everything(): os.closerange(3, 1000); time.sleep(60)

@task
def quits(): sys.exit(5)

@task
def measures(data): return len(data)

@task
def who(ctx):
    return [ctx.run_context.metadata["attempt"], ctx.env["PYOCO_RUN_ID"], ctx.resolve("$env.PYOCO_ATTEMPT")]

TASKS = dict(globals())

def resolve(name):
    if name == "both":
        flow = Flow(name)
        flow.add_task(talks.task); flow.add_task(mumbles.task)
        return flow
    if name == "after_noop_segfaults":
        return Flow(name) >> task(noop.task.func) >> task(segfaults.task.func)
    return Flow(name) >> TASKS[name]
"""

PARENT = """
import anyio, sys
from pyoco_runtime.engine.process_runner import ProcessRunner
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job

async def main():
    runner = ProcessRunner(sys.argv[1], 2)
    async with anyio.create_task_group() as group:
        group.start_soon(runner.keep_warm)
        job = Job(run_id="r", flow_name="deaf", tag="t", submitted_at=0.0)
        await runner.begin(job, Attempt(1, 1), lambda event: None)
        while len(runner.pids) < 2:
            await anyio.sleep(0.01)
        print(*runner.pids, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""

Run = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run an async test on both event loops, and not longer than 30 seconds."""

    def run(test: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            with anyio.fail_after(30):
                await test()

        anyio.run(limited, backend_options={"use_uvloop": request.param == "uvloop"})

    return run


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A resolver over the flows above, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.py").write_text(FLOWS)
    return f"{tmp_path}/flows.py:resolve"


class Watched:
    """A run and what it reports."""

    def __init__(self) -> None:
        self.events: list[Progress] = []
        self.execution: Execution
        self._changed = anyio.Event()

    def report(self, event: Progress) -> None:
        assert not (self.events and isinstance(self.events[-1], FlowEnded)), "something came after the end"
        self.events.append(event)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, seen: Callable[[Progress], bool]) -> None:
        while not any(seen(event) for event in self.events):
            await self._changed.wait()

    async def ending(self) -> Ending:
        await self.until(lambda event: isinstance(event, FlowEnded))
        assert isinstance(self.events[-1], FlowEnded)
        return self.events[-1].ending

    async def output(self) -> Any:
        assert await self.ending() == Completed()
        return self.tasks[-1].output

    @property
    def tasks(self) -> list[TaskEnded]:
        return [event for event in self.events if isinstance(event, TaskEnded)]

    def printed(self, task: str, stream: str = "stdout") -> str:
        logs = (event for event in self.events if isinstance(event, TaskLogged))
        return "".join(log.text for log in logs if (log.task, log.stream) == (task, stream))


def job(flow: str, **params: Any) -> Job:
    return Job(run_id="run", flow_name=flow, tag="t", submitted_at=0.0, params=params)


async def begin(runner: FlowRunner, flow: str, **params: Any) -> Watched:
    watched = Watched()
    watched.execution = await runner.begin(job(flow, **params), Attempt(5, 2), watched.report)
    return watched


def logged(event: Progress) -> bool:
    return isinstance(event, TaskLogged)


@asynccontextmanager
async def processes(spec: str | None, places: int, **options: Any) -> AsyncIterator[ProcessRunner]:
    """A runner whose children are kept warm."""
    runner = ProcessRunner(spec, places, **options)
    async with anyio.create_task_group() as group:
        group.start_soon(runner.keep_warm)
        try:
            yield runner
        finally:
            with anyio.CancelScope(shield=True):
                await runner.close()
            group.cancel_scope.cancel()


@asynccontextmanager
async def threads(spec: str, places: int) -> AsyncIterator[ThreadRunner]:
    runner = ThreadRunner(load_resolver(spec), places)
    try:
        yield runner
    finally:
        await runner.close()


def children() -> set[int]:
    """The processes that this one has started and not reaped."""
    found = [each / "children" for each in Path("/proc/self/task").iterdir()]
    return {int(pid) for each in found if each.exists() for pid in each.read_text().split()}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # a zombie that its new parent has not reaped yet is dead enough
    status = Path(f"/proc/{pid}/stat")
    with suppress(OSError):
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def until_dead(*pids: int) -> None:
    with anyio.fail_after(5):
        while any(map(is_alive, pids)):  # noqa: ASYNC110 - nobody tells us of the death of a stranger
            await anyio.sleep(0.005)


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# -- both runners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [processes, threads])
def test_overlapping_runs_keep_their_logs_apart(make: Any, spec: str, run: Run) -> None:
    """Run by run, task by task and stream by stream, in order and complete."""

    async def test() -> None:
        async with make(spec, 4) as runner:
            watched = {word: await begin(runner, "both", word=word) for word in ("a", "b", "c", "d")}
            for word, each in watched.items():
                assert await each.ending() == Completed()
                assert each.printed("talks") == "".join(f"{word} {number}\n" for number in range(50))
                assert each.printed("talks", "stderr") == f"{word} !\n" * 50
                assert each.printed("mumbles") == "".join(f"m{word} {number}\n" for number in range(50))

    before = sys.stdout, sys.stderr
    run(test)
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("make", [processes, threads])
def test_logs_are_told_while_the_task_runs_and_a_cancel_is_heard(make: Any, spec: str, run: Run) -> None:
    """The task ends because it listens, and the run ends as stopped."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            watched = await begin(runner, "says_and_waits")
            await watched.until(logged)
            assert [type(event) for event in watched.events] == [FlowStarted, TaskStarted, TaskLogged]
            watched.execution.cancel()
            assert await watched.ending() == Stopped()
            assert watched.tasks[-1].output == "stopped"
            watched.execution.cancel()  # too late, and harmless
            watched.execution.kill()
            assert await (await begin(runner, "noop")).ending() == Completed()

    run(test)


@pytest.mark.parametrize("make", [processes, threads])
def test_a_cancel_at_once_stops_it_before_it_begins_or_soon_after(make: Any, spec: str, run: Run) -> None:
    """However early it comes, it is not lost."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            for _ in range(20):
                watched = await begin(runner, "says_and_waits")
                watched.execution.cancel()
                assert await watched.ending() == Stopped()

    run(test)


def test_a_run_that_was_quiet_for_long_is_heard_and_reached(spec: str) -> None:
    """The child's watcher sleeps meanwhile, and wakes up for a word, for a cancel, and for the next run."""

    async def test() -> None:
        async with processes(spec, 1) as runner:
            await (await begin(runner, "noop")).ending()
            watched = await begin(runner, "quiet")
            with anyio.fail_after(10):
                await watched.until(lambda event: isinstance(event, TaskLogged) and "last" in event.text)
                assert watched.printed("quiet") == "after a while\nat last\n"
                await anyio.sleep(1.2)
                watched.execution.cancel()
                assert await watched.ending() == Stopped()
            await anyio.sleep(1.2)
            watched = await begin(runner, "says_and_waits")
            await watched.until(logged)
            watched.execution.cancel()
            assert await watched.ending() == Stopped()

    anyio.run(test)


@pytest.mark.parametrize("make", [processes, threads])
def test_ends_that_are_no_crash(make: Any, spec: str, run: Run) -> None:
    """Unknown flows, sys.exit, a flow.yaml, the fencing token, and a run after each in the same place."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            assert isinstance(await (await begin(runner, "nothing_like_it")).ending(), FlowNotFound)
            ending = await (await begin(runner, "quits")).ending()
            assert isinstance(ending, Raised)
            assert ending.error == "SystemExit: 5"
            assert await (await begin(runner, "who")).output() == ["5.2", "run", "5.2"]
            yaml = (
                "flow: {graph: a}\ntasks: {a: {callable: 'textwrap:indent', inputs: {text: x, prefix: $ctx.params.p}}}"
            )
            watched = Watched()
            await runner.begin(evolve(job("y", p="> "), workflow_yaml=yaml), Attempt(1, 1), watched.report)
            assert await watched.output() == "> x"

    run(test)


@pytest.mark.parametrize("make", [processes, threads])
def test_a_begin_that_is_cancelled_has_begun_nothing(make: Any, spec: str, run: Run) -> None:
    """It waits for a place, is cancelled at many moments, and the place is still there for others."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            for turns in range(12):
                first = await begin(runner, "says_and_waits")
                second = Watched()
                async with anyio.create_task_group() as group:
                    group.start_soon(runner.begin, job("noop"), Attempt(1, 1), second.report)
                    await anyio.wait_all_tasks_blocked()
                    first.execution.cancel()
                    await first.ending()
                    for _ in range(turns):
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
                if second.events:  # it was faster
                    await second.ending()
                assert await (await begin(runner, "noop")).ending() == Completed()

    run(test)


@pytest.mark.parametrize("make", [processes, threads])
def test_params_of_some_megabytes_arrive(make: Any, spec: str, run: Run) -> None:
    """And are too large for the record, which says so."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            watched = await begin(runner, "measures", data="x" * 8_000_000)
            assert await watched.output() == 8_000_000
            assert (watched.tasks[0].inputs, watched.tasks[0].truncated) == ({"data": None}, True)

    run(test)


def test_places_limit_how_many_run_at_once(spec: str, run: Run) -> None:
    """Two processes for six runs, first come first served."""

    async def test() -> None:
        async with processes(spec, 2) as runner:
            order: list[int] = []

            async def one(number: int) -> None:
                watched = await begin(runner, "noop")
                order.append(number)
                await watched.ending()

            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(one, number)
            assert order == sorted(order)
            assert len(runner.pids) == 2

    run(test)


def test_the_example_flows_do_what_they_say(run: Run, tmp_path: Path) -> None:
    """examples/hello_flow.py: one that ends well, one that waits until it is cancelled, one that fails."""
    example = Path(__file__).parents[2] / "examples" / "hello_flow.py"

    async def test() -> None:
        async with processes(f"{example}:resolve", 1, cwd=tmp_path) as runner:
            hello = await begin(runner, "hello", name="Ada")
            assert await hello.output() == len("Hello, Ada!")
            assert hello.printed("greet") == "Hello, Ada!\n"
            slow = await begin(runner, "slow")
            slow.execution.cancel()
            assert await slow.ending() == Stopped()
            failing = await (await begin(runner, "failing")).ending()
            assert isinstance(failing, Raised)
            assert failing.error == "this flow always fails"

    run(test)


# -- threads ----------------------------------------------------------------------------------------------------------


def test_a_killed_thread_keeps_its_place_until_it_ends(
    spec: str, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread cannot be ended: the run is over at once, and it is said that it still runs."""

    async def test() -> None:
        async with threads(spec, 1) as runner:
            watched = await begin(runner, "deaf")
            await watched.until(logged)
            watched.execution.kill()
            assert await watched.ending() == Killed()
            assert "its thread still runs" in caplog.text
            with anyio.move_on_after(0.05) as waited:
                await begin(runner, "noop")
            assert waited.cancelled_caught
            (tmp_path / "wake_up").touch()
            assert await (await begin(runner, "noop")).ending() == Completed()

    run(test)


def test_a_loop_that_is_gone_does_not_matter_to_an_abandoned_thread(spec: str, run: Run, tmp_path: Path) -> None:
    """It ends whenever it likes."""

    async def test() -> None:
        async with threads(spec, 1) as runner:
            await (await begin(runner, "deaf")).until(logged)

    run(test)
    (abandoned,) = [thread for thread in threading.enumerate() if thread.name == "run:run"]
    (tmp_path / "wake_up").touch()
    abandoned.join(5)
    assert not abandoned.is_alive()


# -- processes: crashes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        ("exits", "exited with code 3"),
        ("kills_itself", "killed by signal 9 (SIGKILL)"),
        ("segfaults", "killed by signal 11 (SIGSEGV)"),
        ("closes_everything", "killed by signal 9 (SIGKILL)"),
        ("forks", "exited with code 4"),
    ],
)
def test_a_crash_fails_its_run_and_no_other(flow: str, told: str, spec: str, run: Run) -> None:
    """It is said how the process died and in which task; it is replaced, and the other run goes on."""

    async def test() -> None:
        async with processes(spec, 2) as runner:
            other = await begin(runner, "says_and_waits")
            watched = await begin(runner, flow)
            ending = await watched.ending()
            assert isinstance(ending, Raised)
            assert ending.error.startswith(f"the process of this run died: {told}")
            assert [(each.task, each.status) for each in watched.tasks] == [(flow, TaskStatus.FAILED)]
            assert await (await begin(runner, "noop")).ending() == Completed()
            other.execution.cancel()
            assert await other.ending() == Stopped()

    run(test)


def test_a_cancel_that_is_not_heard_can_be_enforced(spec: str, run: Run) -> None:
    """The process is killed, with what it has started; the place is filled again."""

    async def test() -> None:
        async with processes(spec, 1) as runner:
            watched = await begin(runner, "with_child")
            await watched.until(logged)
            (pid,), grandchild = runner.pids, int(watched.printed("with_child").split()[1])
            watched.execution.cancel()
            watched.execution.kill()
            assert await watched.ending() == Killed()
            await until_dead(pid, grandchild)
            assert await (await begin(runner, "noop")).ending() == Completed()

    run(test)


def test_an_idle_child_that_dies_is_replaced(spec: str, run: Run) -> None:
    """Nobody has to wait for a run to notice."""

    async def test() -> None:
        async with processes(spec, 1) as runner:
            pid = await (await begin(runner, "noop")).output()
            os.kill(pid, signal.SIGKILL)
            while pid in runner.pids:  # noqa: ASYNC110 - the pool tells its owner only
                await anyio.sleep(0.005)
            assert await (await begin(runner, "noop")).output() != pid

    run(test)


# -- processes: starting and replacing --------------------------------------------------------------------------------


def test_a_resolver_that_cannot_be_imported_is_told_at_once(tmp_path: Path, run: Run) -> None:
    """To who waits and who comes later; and when it is mended, runs begin."""
    file = tmp_path / "bad_flows.py"
    file.write_text("import no_such_dependency")

    async def test() -> None:
        file.write_text("import no_such_dependency")
        async with processes(f"{file}:resolve", 2, cwd=tmp_path) as runner:
            for _ in range(2):
                with pytest.raises(RunnerUnavailable, match=r"'no_such_dependency' .*bad_flows\.py, line 1"):
                    await begin(runner, "noop")
            file.write_text(FLOWS)
            runner.replace()
            assert await (await begin(runner, "noop")).ending() == Completed()

    run(test)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; os._exit(9)", "died while it started: exited with code 9"),
        ("import os; os.kill(os.getpid(), 11)", r"died while it started: killed by signal 11 \(SIGSEGV\)"),
        ("import time; time.sleep(60)", "was not ready after 1 s"),
    ],
)
def test_a_child_that_does_not_start_is_told(
    code: str, told: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it dies or hangs."""
    monkeypatch.setattr(child_process, "START_SEC", 1.0)
    (tmp_path / "flows.py").write_text(code)

    async def test() -> None:
        async with processes(f"{tmp_path}/flows.py:resolve", 1) as runner:
            with pytest.raises(RunnerUnavailable, match=told):
                await begin(runner, "noop")

    run(test)


def test_a_directory_that_is_not_there_is_told(spec: str, run: Run, tmp_path: Path) -> None:
    """No process can be started in it."""

    async def test() -> None:
        async with processes(spec, 1, cwd=tmp_path / "nowhere") as runner:
            with pytest.raises(RunnerUnavailable, match="nowhere"):
                await begin(runner, "noop")

    run(test)


def test_without_a_resolver_only_flow_yaml_is_executed(spec: str, run: Run) -> None:
    """A worker for submitted files."""

    async def test() -> None:
        async with processes(None, 1) as runner:
            assert isinstance(await (await begin(runner, "noop")).ending(), FlowNotFound)

    run(test)


def test_replaced_children_see_what_has_changed(tmp_path: Path, run: Run) -> None:
    """Idle ones are replaced now, a busy one after its run, which goes on with what it began with."""
    (tmp_path / "flows.py").write_text(
        FLOWS + "\n@task\ndef version(ctx):\n    import lib_in_overlay\n    before = lib_in_overlay.VERSION\n"
        "    if 'wait' in ctx.params:\n        print('waiting')\n        while not ctx.is_cancelled: time.sleep(.005)\n"
        "    from importlib import metadata\n    return [before, metadata.version('lib-in-overlay')]\n"
        "TASKS['version'] = version\n"
    )

    def install(version: str) -> Path:
        made = tmp_path / f"overlay-{version}"
        info = made / f"lib_in_overlay-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (made / "lib_in_overlay.py").write_text(f"VERSION = {version!r}")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lib-in-overlay\nVersion: {version}\n")
        return made

    async def test() -> None:
        current = [install("1.0")]
        async with processes(f"{tmp_path}/flows.py:resolve", 2, overlay=lambda: tuple(current), cwd=tmp_path) as runner:
            assert await (await begin(runner, "version")).output() == ["1.0", "1.0"]
            busy = await begin(runner, "version", wait=True)
            await busy.until(logged)
            current[:] = [install("2.0")]
            before = runner.pids
            runner.replace()
            for _ in range(4):
                assert await (await begin(runner, "version")).output() == ["2.0", "2.0"]
            busy.execution.cancel()
            assert await busy.ending() == Stopped()
            assert busy.tasks[-1].output == ["1.0", "1.0"]
            await until_dead(*before)

    run(test)


def test_keep_warm_may_come_and_go(spec: str, run: Run) -> None:
    """Cancelled in the middle of a run it disturbs nobody, and idle children still take runs."""

    async def test() -> None:
        runner = ProcessRunner(spec, 2)
        async with anyio.create_task_group() as group:
            group.start_soon(runner.keep_warm)
            busy = await begin(runner, "says_and_waits")
            await busy.until(logged)
            pid = await (await begin(runner, "noop")).output()
            group.cancel_scope.cancel()
        pids = runner.pids
        assert await (await begin(runner, "noop")).output() == pid
        busy.execution.cancel()
        assert await busy.ending() == Stopped()
        async with anyio.create_task_group() as group:
            group.start_soon(runner.keep_warm)
            assert await (await begin(runner, "noop")).output() in pids
            assert runner.pids == pids
            await runner.close()
            group.cancel_scope.cancel()

    run(test)


def test_keep_warm_cancelled_while_it_starts_leaves_nothing_half_done(spec: str, run: Run) -> None:
    """At whichever step; the next one completes the pool."""

    async def test() -> None:
        runner = ProcessRunner(spec, 2)
        for turns in range(6):
            async with anyio.create_task_group() as group:
                group.start_soon(runner.keep_warm)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        async with anyio.create_task_group() as group:
            group.start_soon(runner.keep_warm)
            for _ in range(4):
                assert await (await begin(runner, "noop")).ending() == Completed()
            assert len(runner.pids) == 2
            await runner.close()
            group.cancel_scope.cancel()

    before = children()
    run(test)
    assert children() == before


# -- processes: ending ------------------------------------------------------------------------------------------------


def test_close_ends_all_and_leaves_no_zombie(spec: str, run: Run) -> None:
    """Idle and busy, also one that will not listen; its run is reported as killed."""

    async def test() -> None:
        async with processes(spec, 3) as runner:
            deaf = await begin(runner, "deaf")
            await deaf.until(logged)
            await (await begin(runner, "noop")).ending()
            pids = runner.pids
            await runner.close()
            assert await deaf.ending() == Killed()
            assert not any(map(is_alive, pids))
            with pytest.raises(RunnerUnavailable, match="closed"):
                await begin(runner, "noop")

    before = children()
    run(test)
    assert children() == before


def test_close_that_is_cancelled_ends_all_the_same(spec: str, run: Run) -> None:
    """There is no time to ask."""

    async def test() -> None:
        async with processes(spec, 2) as runner:
            await (await begin(runner, "deaf")).until(logged)
            pids = runner.pids
            with anyio.CancelScope() as scope:
                scope.cancel()
                await runner.close()
            assert not any(map(is_alive, pids))

    before = children()
    run(test)
    assert children() == before


def test_children_die_with_their_parent(spec: str, tmp_path: Path) -> None:
    """Even if that is killed, and even in the middle of a run."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, spec], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        lines = iter(parent.stdout.readline, "")
        pids = [int(word) for word in next(line for line in lines if not line.startswith("deaf")).split()]
        assert all(map(is_alive, pids))
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()  # type: ignore[union-attr]
    anyio.run(until_dead, *pids)


def test_a_child_ignores_ctrl_c_and_ends_by_sigterm(spec: str, run: Run) -> None:
    """Ctrl-C is for the parent; SIGTERM is what an operator sends to one process."""

    async def test() -> None:
        async with processes(spec, 1) as runner:
            watched = await begin(runner, "says_and_waits")
            await watched.until(logged)
            (pid,) = runner.pids
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGTERM)
            ending = await watched.ending()
            assert isinstance(ending, Raised)
            assert "killed by signal 15 (SIGTERM)" in ending.error

    run(test)


@pytest.mark.parametrize("make", [processes, threads])
def test_two_thousand_runs_leave_nothing_behind(make: Any, spec: str, run: Run) -> None:
    """No file, no thread, no memory that grows, in us or in the child."""

    async def test() -> None:
        async with make(spec, 1) as runner:
            offered = anyio.Event()
            if isinstance(runner, ProcessRunner):
                runner.tell_offer(lambda offer: offered.set())
                await offered.wait()  # by a process that has ended then
            pid = await (await begin(runner, "noop")).output()
            await many(runner, 1000)
            before = open_files(), resident_kib(pid), resident_kib(os.getpid())
            await many(runner, 2000)
            after = open_files(), resident_kib(pid), resident_kib(os.getpid())
            assert after[0] == before[0]
            assert after[1] - before[1] < 1024
            assert after[2] - before[2] < 1024

    async def many(runner: FlowRunner, count: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            over: asyncio.Future[None] = loop.create_future()
            await runner.begin(job("noop"), Attempt(1, 1), functools.partial(note, over))
            await over

    def note(over: asyncio.Future[None], event: Progress) -> None:
        if isinstance(event, FlowEnded):
            over.set_result(None)

    threads_before = threading.active_count()
    run(test)
    assert threading.active_count() <= threads_before


def resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
