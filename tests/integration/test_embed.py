"""A worker inside somebody else's program, on asyncio, uvloop and trio, with a real nats-server."""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import nats
import pytest
import trio
from attrs import evolve, frozen
from nats.js import JetStreamContext
from pyoco import task
from pyoco.core.models import Flow

import pyoco_runtime
from pyoco_runtime.core import Context, Intensity, Phase
from pyoco_runtime.embed.loop_worker import LoopWorker
from pyoco_runtime.embed.order import order_from
from pyoco_runtime.embed.thread_worker import ThreadWorker
from pyoco_runtime.errors import InvalidSetting, NoSuchActor, NotRunning, RestartIntensityExceeded, UserError
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.wire import job_to, snapshot_from, snapshot_to
from pyoco_runtime.testing.nats_server import RunningServer, nats_server

T = TypeVar("T")
LIMIT_SEC = 20.0  # below the ack wait of 30 s: what waits for that fails the test
HELLO = f"{Path(__file__).parents[2] / 'examples/hello_flow.py'}:resolve"

Main = Callable[[], Awaitable[T]]


# -- hosts -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["asyncio", "uvloop", "trio", "anyio"])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(host: str, main: Main[T]) -> T:
    """Run a program on that host, as its users start it."""

    async def limited() -> T:
        with anyio.fail_after(2 * LIMIT_SEC):
            return await main()

    match host:
        case "asyncio":
            return asyncio.run(limited())
        case "uvloop":
            return anyio.run(limited, backend_options={"use_uvloop": True})
        case "anyio":
            return anyio.run(limited)
        case _:
            return trio.run(limited)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with nats_server(tmp_path_factory.mktemp("embed") / "store") as running:
        asyncio.run(settle_in(running.url))
        yield running


async def settle_in(url: str) -> None:
    """Have everything made in JetStream that a worker makes at its first start."""
    async with pyoco_runtime.worker(flow_resolver=None, nats_url=url, tags=["nobody"]) as w:
        await w.wait_ready()


# -- somebody who submits runs ----------------------------------------------------------------------------------------


@frozen
class Customer:
    """Submits runs of one tag and looks after them; every call is blocking."""

    url: str
    tag: str

    def submit(self, flow: str, **params: Any) -> str:
        """Put a run on the queue; returns its id."""
        return self._with_jetstream(functools.partial(self._submit, flow, params))

    def until(self, run_id: str, *statuses: RunStatus) -> RunSnapshot:
        """Wait until the run has such a status."""
        return self._with_jetstream(functools.partial(self._until, run_id, statuses))

    def look(self, run_id: str) -> RunSnapshot:
        """The run as it is."""
        return self.until(run_id, *RunStatus)

    def _with_jetstream(self, ask: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        async def main() -> T:
            client = await nats.connect(self.url)
            try:
                return await asyncio.wait_for(ask(client.jetstream()), LIMIT_SEC)
            finally:
                await client.close()

        return asyncio.run(main())

    async def _submit(self, flow: str, params: dict[str, Any], js: JetStreamContext) -> str:
        run_id = str(uuid.uuid4())
        pending = RunSnapshot(run_id=run_id, flow_name=flow, status=RunStatus.PENDING, tag=self.tag, params=params)
        job = Job(run_id=run_id, flow_name=flow, tag=self.tag, submitted_at=time.time(), params=params)
        await (await js.key_value("pyoco_runs")).create(run_id, snapshot_to(pending, 262144)[0])
        await js.publish(f"pyoco.work.{self.tag}", job_to(job))
        return run_id

    async def _until(self, run_id: str, statuses: tuple[RunStatus, ...], js: JetStreamContext) -> RunSnapshot:
        watcher = await (await js.key_value("pyoco_runs")).watch(run_id)
        async for entry in watcher:
            if entry is not None and entry.value is not None:
                snapshot = snapshot_from(entry.value)
                if snapshot.status in statuses:
                    return snapshot
        raise AssertionError("the watch ended")


@pytest.fixture
def customer(server: RunningServer) -> Customer:
    return Customer(server.url, f"t{uuid.uuid4().hex[:8]}")


async def aside(function: Callable[..., T], *args: Any) -> T:
    """Call a blocking function of the customer."""
    return await anyio.to_thread.run_sync(function, *args)


def one_flow(function: Callable[..., object]) -> Callable[[str], Flow]:
    """A resolver with this one task as every flow."""
    flow = Flow(name="only") >> task(function)
    return lambda name: flow


class Sluggish:
    """A flow that says when it has begun, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.resolve = one_flow(self._work)

    def _work(self, ctx: Any) -> str:
        self.begun.set()
        assert self.may_end.wait(2 * LIMIT_SEC)
        return "done"

    async def until_begun(self) -> None:
        assert await aside(self.begun.wait, LIMIT_SEC)


@pytest.fixture
def sluggish() -> Iterator[Sluggish]:
    flow = Sluggish()
    yield flow
    flow.may_end.set()
    for thread in threading.enumerate():
        if thread.name.startswith("run:"):
            thread.join(LIMIT_SEC)


def at_once(ctx: Any) -> str:
    return "done"


# -- runs ------------------------------------------------------------------------------------------------------------


def test_runs_are_executed_in_threads_of_the_program(host: str, server: RunningServer, customer: Customer) -> None:
    """A function of the program resolves the flows, and they see the program's own objects."""
    seen: list[int] = []

    def note(ctx: Any, number: int) -> int:
        seen.append(number)
        return os.getpid()

    async def main() -> None:
        tags = [customer.tag]
        async with pyoco_runtime.worker(flow_resolver=one_flow(note), tags=tags, nats_url=server.url) as w:
            await w.wait_ready()
            ids = [await aside(functools.partial(customer.submit, "any", number=number)) for number in range(3)]
            for run_id in ids:
                ended = await aside(customer.until, run_id, RunStatus.COMPLETED, RunStatus.FAILED)
                assert ended.status is RunStatus.COMPLETED, ended.error
                assert ended.worker_id == w.worker_id
                assert [record.output for record in ended.task_records.values()] == [os.getpid()]

    run(host, main)
    assert sorted(seen) == [0, 1, 2]


def test_runs_are_executed_in_child_processes(host: str, server: RunningServer, customer: Customer) -> None:
    """A resolver that is named runs flows in other processes, which are gone with the block."""

    async def main() -> None:
        before = children()
        async with pyoco_runtime.worker(
            flow_resolver=HELLO, tags=[customer.tag], nats_url=server.url, concurrency=1
        ) as w:
            await w.wait_ready()
            run_id = await aside(functools.partial(customer.submit, "hello", name="you"))
            ended = await aside(customer.until, run_id, RunStatus.COMPLETED, RunStatus.FAILED)
            assert ended.status is RunStatus.COMPLETED, ended.error
            assert len(children() - before) in (1, 2)  # the second finds out what there is to run, and ends
        assert children() == before

    run(host, main)


def test_leaving_waits_for_the_runs_that_execute(host: str, server: RunningServer, customer: Customer) -> None:
    """The block ends when the run has ended, is recorded and acknowledged."""

    def half_a_second(ctx: Any) -> str:
        time.sleep(0.5)  # the work itself
        return "done"

    async def main() -> str:
        async with pyoco_runtime.worker(
            flow_resolver=one_flow(half_a_second), tags=[customer.tag], nats_url=server.url
        ) as w:
            await w.wait_ready()
            run_id = await aside(customer.submit, "any")
            await aside(customer.until, run_id, RunStatus.RUNNING)
        return run_id

    assert customer.look(run(host, main)).status is RunStatus.COMPLETED


def test_what_does_not_end_in_time_is_given_back(
    host: str, server: RunningServer, customer: Customer, sluggish: Sluggish
) -> None:
    """Past the drain time another worker gets the run at once, not after the ack wait."""

    async def main() -> None:
        options: dict[str, Any] = {"tags": [customer.tag], "nats_url": server.url}
        async with pyoco_runtime.worker(flow_resolver=sluggish.resolve, drain_sec=0.2, **options):
            run_id = await aside(customer.submit, "any")
            await sluggish.until_begun()
            began = anyio.current_time()
        assert 0.2 <= anyio.current_time() - began < 3
        async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), **options) as second:
            ended = await aside(customer.until, run_id, RunStatus.COMPLETED)
            assert ended.worker_id == second.worker_id
            assert ended.attempt is not None
            assert ended.attempt.delivery == 2

    run(host, main)


def test_two_workers_in_one_program(host: str, server: RunningServer, customer: Customer) -> None:
    """Each has an id, a tree and a connection of its own."""
    other = evolve(customer, tag=f"{customer.tag}x")

    async def main() -> None:
        resolve = one_flow(at_once)
        async with (
            pyoco_runtime.worker(flow_resolver=resolve, tags=[customer.tag], nats_url=server.url) as first,
            pyoco_runtime.worker(flow_resolver=resolve, tags=[other.tag], nats_url=[server.url]) as second,
        ):
            assert first.worker_id != second.worker_id
            for who, w in ((customer, first), (other, second)):
                run_id = await aside(who.submit, "any")
                ended = await aside(who.until, run_id, RunStatus.COMPLETED)
                assert ended.worker_id == w.worker_id

    run(host, main)


# -- how the block ends ----------------------------------------------------------------------------------------------


def test_an_error_of_the_block_drains_and_passes(host: str, server: RunningServer, customer: Customer) -> None:
    """What the program raises comes out as it is."""

    async def main() -> None:
        async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), tags=[customer.tag], nats_url=server.url) as w:
            await w.wait_ready()
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(host, main)


def test_a_cancel_scope_gives_everything_back_now(
    host: str, server: RunningServer, customer: Customer, sluggish: Sluggish
) -> None:
    """A cancelled block does not drain: the run goes to another worker at once."""

    async def main() -> None:
        options: dict[str, Any] = {"tags": [customer.tag], "nats_url": server.url}
        with anyio.CancelScope() as scope:
            async with pyoco_runtime.worker(flow_resolver=sluggish.resolve, **options):
                run_id = await aside(customer.submit, "any")
                await sluggish.until_begun()
                began = anyio.current_time()
                scope.cancel()
                await anyio.sleep_forever()
        assert anyio.current_time() - began < 3
        async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), **options):
            assert (await aside(customer.until, run_id, RunStatus.COMPLETED)).status is RunStatus.COMPLETED

    run(host, main)


def test_a_cancel_while_it_drains_hurries_it(
    host: str, server: RunningServer, customer: Customer, sluggish: Sluggish
) -> None:
    """The first step of leaving is patient; a cancel ends the patience."""

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with pyoco_runtime.worker(flow_resolver=sluggish.resolve, tags=[customer.tag], nats_url=server.url):
                await aside(customer.submit, "any")
                await sluggish.until_begun()
                began = anyio.current_time()
                scope.deadline = began + 0.3
        assert scope.cancelled_caught
        assert 0.3 <= anyio.current_time() - began < 3

    run(host, main)


def test_a_cancel_while_it_starts_leaves_no_thread(host: str, server: RunningServer) -> None:
    """However early it comes."""

    async def main() -> None:
        before = set(threading.enumerate())
        for delay_sec in (0.0, 0.001, 0.003, 0.01, 0.03):
            with anyio.move_on_after(delay_sec):
                async with pyoco_runtime.worker(flow_resolver=None, nats_url=server.url):
                    await anyio.sleep_forever()
            assert set(threading.enumerate()) == before

    run(host, main)


@pytest.mark.parametrize("times", [1, 3])
def test_an_asyncio_program_cancels_natively(
    times: int, server: RunningServer, customer: Customer, sluggish: Sluggish
) -> None:
    """Task.cancel(), once or again and again: the run is given back and no task stays."""
    options: dict[str, Any] = {"tags": [customer.tag], "nats_url": server.url}

    async def embed() -> None:
        async with pyoco_runtime.worker(flow_resolver=sluggish.resolve, **options):
            await asyncio.sleep(1000)

    async def main() -> None:
        program = asyncio.create_task(embed())
        run_id = await aside(customer.submit, "any")
        await sluggish.until_begun()
        began = time.monotonic()
        for _ in range(times):
            program.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await program
        assert time.monotonic() - began < 3
        assert asyncio.all_tasks() - {asyncio.current_task()} == set()
        async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), **options):
            await aside(customer.until, run_id, RunStatus.COMPLETED)

    asyncio.run(main())


@pytest.mark.parametrize("times", [1, 3])
def test_a_native_cancel_leaves_no_process(times: int, server: RunningServer, customer: Customer) -> None:
    """The processes that execute flows end with the block, also when it is cancelled while they are being ended."""

    async def embed(ready: asyncio.Event) -> None:
        async with pyoco_runtime.worker(flow_resolver=HELLO, tags=[customer.tag], nats_url=server.url) as w:
            await w.wait_ready()
            ready.set()
            await asyncio.sleep(1000)

    async def main() -> None:
        before = children()
        ready = asyncio.Event()
        program = asyncio.create_task(embed(ready))
        await ready.wait()
        for _ in range(times):
            program.cancel()
            for _ in range(3):
                await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await program
        assert children() == before

    asyncio.run(main())


def test_an_asyncio_time_limit_holds(server: RunningServer) -> None:
    """asyncio.timeout() around the block ends it, and knows that it was the one."""

    async def main() -> None:
        async with asyncio.timeout(0.3):
            async with pyoco_runtime.worker(flow_resolver=None, nats_url=server.url):
                await asyncio.sleep(1000)

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_ctrl_c_gives_everything_back_now(
    host: str, server: RunningServer, customer: Customer, sluggish: Sluggish
) -> None:
    """SIGINT stays the host's: it ends the program as it always does, and the run goes to another worker."""
    options: dict[str, Any] = {"tags": [customer.tag], "nats_url": server.url}
    submitted: list[str] = []

    async def interrupted() -> None:
        async with pyoco_runtime.worker(flow_resolver=sluggish.resolve, **options):
            submitted.append(await aside(customer.submit, "any"))
            await sluggish.until_begun()
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()

    async def another() -> None:
        async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), **options):
            await aside(customer.until, submitted[0], RunStatus.COMPLETED)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(host, interrupted)
    assert time.monotonic() - began < 5
    run(host, another)


class Falling:
    """A link that falls over as soon as it is let."""

    def __init__(self, may_fall: threading.Event) -> None:
        self._may_fall = may_fall

    async def run(self, context: Context) -> None:
        context.ready()
        await anyio.to_thread.run_sync(self._may_fall.wait)
        raise RuntimeError("it fell")


def test_a_worker_that_gives_up_cancels_the_block_and_says_why(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program learns of it where it waits, and the error comes out of the block."""
    may_fall = threading.Event()
    monkeypatch.setattr("pyoco_runtime.tree.Link", lambda owner: Falling(may_fall))
    order = order_from(None, 1.0, {})
    root = evolve(order.loaded.layout.root, intensity=Intensity(0, 1.0))
    order = evolve(order, loaded=evolve(order.loaded, layout=evolve(order.loaded.layout, root=root)))
    cancelled: list[bool] = []

    async def main() -> None:
        w = ThreadWorker(order) if host == "trio" else LoopWorker(order)
        async with w.running():
            may_fall.set()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                cancelled.append(True)
                raise

    with pytest.raises(RestartIntensityExceeded, match="it fell"):
        run(host, main)
    assert cancelled == [True]


# -- what it leaves behind -------------------------------------------------------------------------------------------


def children() -> set[int]:
    """The processes that this one has started."""
    found = ""
    for each in Path("/proc/self/task").iterdir():
        try:
            found += (each / "children").read_text()
        except FileNotFoundError:  # a thread that has just ended
            continue
    return {int(pid) for pid in found.split()}


def sockets() -> set[str]:
    """The open sockets, pipes and the like of this process."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(os.readlink(each))
        except FileNotFoundError:  # the one through which we look
            continue
    return {name for name in found if name.startswith(("socket:", "pipe:", "anon_inode:"))}


def loggers() -> dict[str, object]:
    """Who logs where."""
    found = {name: logging.getLogger(name) for name in ("", "asyncio", "pyoco_runtime", "nats", "pyoco")}
    return {name: (log.level, tuple(log.handlers), log.propagate, log.disabled) for name, log in found.items()}


def traces() -> dict[str, object]:
    """Everything of a program that a guest could leave changed."""
    is_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
    return {
        "signals": {each: signal.getsignal(each) for each in signal.valid_signals()},
        "loggers": loggers(),
        "threads": set(threading.enumerate()),
        "tasks": asyncio.all_tasks() if is_asyncio else trio.lowlevel.current_statistics().tasks_living,
        "sockets": sockets(),
        "children": children(),
        "streams": (sys.stdout, sys.stderr),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "place": os.getcwd(),
        "variables": dict(contextvars.copy_context()),
    }


@pytest.mark.parametrize("resolver", [None, HELLO], ids=["thread", "process"])
def test_nothing_is_left_behind(host: str, resolver: str | None, server: RunningServer, customer: Customer) -> None:
    """No signal or log handler, thread, task, socket, process or variable differs after the block."""

    async def embed(variables: object = None) -> None:
        async with pyoco_runtime.worker(
            flow_resolver=resolver or one_flow(at_once), tags=[customer.tag], nats_url=server.url, concurrency=2
        ) as w:
            await w.wait_ready()
            run_id = await aside(customer.submit, "hello")
            await aside(customer.until, run_id, RunStatus.COMPLETED)
            assert variables in (None, traces()["variables"])

    async def main() -> None:
        await embed()  # what is made once in a process: imports, and the thread that the customer uses
        before = traces()
        await embed(before["variables"])
        after = traces()
        for name, left in before.items():
            assert after[name] == left, name

    run(host, main)


def test_nothing_but_the_parameters_counts(
    host: str, server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the environment nor .env nor supervisor.toml is read, be they ever so wrong."""
    (tmp_path / ".env").write_text("PYOCO_CONCURRENCY=many\n")
    (tmp_path / "supervisor.toml").write_text("not toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYOCO_TAGS", "no such tag!")
    monkeypatch.setenv("PYOCO_CONFIG", "nowhere.toml")

    async def main() -> None:
        async with pyoco_runtime.worker(flow_resolver=None, nats_url=server.url) as w:
            await w.wait_ready()
            assert "runtime/worker/consumer:default" in [actor.path for actor in w.status().walk()]

    run(host, main)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "supervisor.toml"]


def test_the_package_is_light_until_a_worker_is_asked_for() -> None:
    """`import pyoco_runtime.core` brings neither NATS nor HTTP nor pyoco."""
    heavy = "nats", "quart", "hypercorn", "pyoco", "trio", "uvloop"
    program = f"import sys, pyoco_runtime.core; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- NATS ------------------------------------------------------------------------------------------------------------


def test_it_starts_while_nats_is_away(host: str, tmp_path: Path) -> None:
    """The block is entered at once, and runs are executed when NATS has come."""
    with nats_server(tmp_path / "store") as away:
        url = away.url
        away.stop()

        async def main() -> None:
            customer = Customer(url, "early")
            async with pyoco_runtime.worker(flow_resolver=one_flow(at_once), tags=["early"], nats_url=url) as w:
                with anyio.move_on_after(0.2) as scope:
                    await w.wait_ready()
                assert scope.cancelled_caught
                await aside(away.start)
                await w.wait_ready()
                run_id = await aside(customer.submit, "any")
                await aside(customer.until, run_id, RunStatus.COMPLETED)

        run(host, main)


def test_it_leaves_while_nats_is_away(host: str, tmp_path: Path) -> None:
    """There is nobody to say good-bye to, and the block ends all the same."""
    with nats_server(tmp_path / "store") as away:
        url = away.url
        away.stop()

        async def main() -> None:
            async with pyoco_runtime.worker(flow_resolver=None, nats_url=url):
                began = anyio.current_time()
            assert anyio.current_time() - began < 10

        run(host, main)


# -- the tree --------------------------------------------------------------------------------------------------------


def test_the_tree_can_be_seen_and_restarted(host: str, server: RunningServer, customer: Customer) -> None:
    """By path or by the last part of it; a restarted consumer goes on."""

    async def main() -> None:
        async with pyoco_runtime.worker(
            flow_resolver=one_flow(at_once), tags=[customer.tag], nats_url=server.url, worker_id="me.1"
        ) as w:
            assert w.worker_id == "me.1"
            await w.wait_ready()
            names = [actor.path for actor in w.status().walk()]
            assert names[:3] == ["runtime", "runtime/link", "runtime/worker"]
            assert not {"runtime/probe", "runtime/console"} & set(names)
            w.restart(f"consumer:{customer.tag}")
            w.restart("runtime/link")
            with pytest.raises(NoSuchActor, match="did you mean"):
                w.restart("linc")
            # a restart tells nobody but the tree
            while any(actor.phase is not Phase.RUNNING for actor in w.status().walk()):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            restarts = {actor.name: actor.restarts for actor in w.status().walk()}
            assert restarts[f"consumer:{customer.tag}"] == restarts["link"] == 1
            run_id = await aside(customer.submit, "any")
            await aside(customer.until, run_id, RunStatus.COMPLETED)
        assert w.status().phase is Phase.DONE
        with pytest.raises(NotRunning):
            w.restart("link")

    run(host, main)


# -- parameters ------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"concurrency": 0}, "parameter concurrency: 0 is not a whole number from 1 to 1024"),
    ({"concurrency": True}, "parameter concurrency: true is not"),
    ({"concurrency": "four"}, 'parameter concurrency: "four" is not'),
    ({"tags": ["a", "b.c"]}, 'parameter tags: "a,b.c" is not names of letters'),
    ({"tags": []}, "parameter tags"),
    ({"tags": [1]}, "parameter tags"),
    ({"nats_url": "http://h"}, 'parameter nats_url: "http://h" is not a list of URLs'),
    ({"nats_url": "nats://me:secret@"}, "parameter nats_url"),
    ({"worker_id": "a b"}, 'parameter worker_id: "a b" is not'),
    ({"drain_sec": -1}, "parameter drain_sec: -1 is not a number of seconds from 0"),
    ({"drain_sec": float("inf")}, "parameter drain_sec: inf is not"),
    ({"isolation": "fiber"}, 'parameter isolation: "fiber" is not'),
    ({"isolation": "process"}, "parameter isolation: a function cannot be handed to other processes"),
    ({"flow_resolver": 42}, "parameter flow_resolver: 42 is neither a function nor the name of one"),
    ({"flow_resolver": "nonsense"}, 'parameter flow_resolver: "nonsense" is not module:function'),
    ({"flow_resolver": anyio.sleep}, "parameter flow_resolver: an async function"),
    ({"run_heartbeat": 1}, 'parameter "run_heartbeat" is not a setting; did you mean "run_heartbeat_interval_sec"'),
    ({"role": "gateway"}, "parameter role: an embedded worker is always a worker"),
    ({"log_level": "DEBUG"}, "parameter log_level: logging is up to your program"),
    ({"config": "my.toml"}, "parameter config: an embedded worker reads no file"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_parameter_is_named(given: dict[str, Any], message: str) -> None:
    """At once, before anything starts, and without repeating a password."""
    with pytest.raises(InvalidSetting) as caught:
        pyoco_runtime.worker(**{"flow_resolver": one_flow(at_once), **given})
    assert str(caught.value).startswith(message)
    assert "secret" not in str(caught.value)


def test_settings_are_taken_as_python_values() -> None:
    """Numbers, paths, lists and words, as text or as what they are."""
    order = order_from(
        None,
        2,
        {"tags": ("a", "b"), "ack_progress_interval_sec": 3, "wheel_sync_dir": Path("x"), "concurrency": "7"},
    )
    settings = order.loaded.settings
    assert settings.tags == ("a", "b")
    assert (settings.ack_progress_interval_sec, settings.wheel_sync_dir, settings.concurrency) == (3.0, Path("x"), 7)
    assert order.loaded.sources["tags"] == "parameter tags"


def test_a_resolver_that_cannot_be_imported_is_told_on_entering(host: str) -> None:
    """With the words of the command line."""

    async def main() -> None:
        async with pyoco_runtime.worker(flow_resolver="no_such_module:resolve", isolation="thread"):
            raise AssertionError("it was entered")

    with pytest.raises(UserError, match="there is no module"):
        run(host, main)
