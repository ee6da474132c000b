"""An asyncio host cancels natively, with Task.cancel(): nothing may leak, and the order of stopping holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pyoco_runtime.core import ActorSpec, Backoff, Context, Event, Exited, Started, Supervisor, SupervisorSpec
from pyoco_runtime.testing.virtual_time import run_virtual

Body = Callable[[Context], Awaitable[None]]


class Scripted:
    def __init__(self, body: Body) -> None:
        self._body = body

    async def run(self, context: Context) -> None:
        await self._body(context)


async def serve(context: Context) -> None:
    context.ready()
    await context.stopping.wait()
    await anyio.sleep(100)  # a drain that only a cancel ends


async def crash(context: Context) -> None:
    context.ready()
    await anyio.sleep(1)
    raise RuntimeError("again")


def make_tree(events: list[Event]) -> Supervisor:
    spec = SupervisorSpec(
        "root",
        (
            ActorSpec("a", lambda: Scripted(serve), shutdown_sec=200),
            ActorSpec("b", lambda: Scripted(crash), backoff=Backoff(0.5, 1, 0.5, 0), shutdown_sec=200),
            ActorSpec("c", lambda: Scripted(serve), shutdown_sec=200),
        ),
    )
    supervisor = Supervisor(spec)
    supervisor.feed.listen(events.append)
    return supervisor


@pytest.mark.parametrize("after_sec", [0.0, 0.3, 1.0, 1.2, 1.5, 2.0, 2.7])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_native_cancel_of_the_host_stops_the_tree_in_order_and_leaks_nothing(after_sec: float, times: int) -> None:
    """At every moment of a crash and restart, cancelled once or several times in a row."""
    events: list[Event] = []

    async def host() -> None:
        async with make_tree(events):
            await asyncio.sleep(1000)

    async def main() -> None:
        task = asyncio.create_task(host())
        await asyncio.sleep(after_sec)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert asyncio.get_running_loop().time() < after_sec + 1

    run_virtual(main, backend="asyncio")
    started = [e.path for e in events if isinstance(e, Started)]
    exited = [e.path for e in events if isinstance(e, Exited)]
    assert sorted(started) == sorted(exited)
    if "root/c" in exited:
        assert exited.index("root/c") < exited.index("root/a")


def test_an_actor_whose_task_is_cancelled_by_a_stranger_is_restarted() -> None:
    """A library that cancels an actor's task crashes that actor, not the tree."""
    tasks: list[asyncio.Task[object]] = []

    async def body(context: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        context.ready()
        await context.stopping.wait()

    async def main() -> None:
        async with Supervisor(SupervisorSpec("root", (ActorSpec("a", lambda: Scripted(body)),))) as tree:
            tasks[0].cancel()
            await asyncio.sleep(5)
            status = tree.status().children[0]
            assert status.restarts == 1
            assert status.last_crash is not None
            assert status.last_crash.type == "CancelledByStranger"

    run_virtual(main, backend="asyncio")


def test_every_task_cancelled_at_once_ends_the_tree() -> None:
    """What asyncio.run does to a tree that somebody left in a background task."""

    async def host() -> None:
        async with make_tree([]):
            await asyncio.sleep(1000)

    async def main() -> None:
        background = asyncio.create_task(host())
        await asyncio.sleep(0.7)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await background
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main, backend="asyncio")
