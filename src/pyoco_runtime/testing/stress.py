"""Start and stop an actor at every moment, in every way, and see that nothing is left over."""

from __future__ import annotations

import random
from collections.abc import Callable

import anyio
import trio
from anyio.lowlevel import checkpoint

from pyoco_runtime.core import Actor, ActorSpec, Backoff, Intensity, Supervisor, SupervisorSpec, World
from pyoco_runtime.testing.virtual_time import run_virtual

_PATIENT = Intensity(max_restarts=1_000_000, within_sec=1.0)


def stress_start_cancel(make: Callable[[], Actor], *, seeds: range = range(50), within_sec: float = 30.0) -> None:
    """Run the actor under a supervisor once for each seed, and stop, restart or cancel it after a random time.

    `make` gives a fresh actor on memory ports; it is called inside the event loop. Raises if the actor hangs, leaves
    a task behind, or raises what its supervisor would not see in ordinary life.
    """
    for seed in seeds:
        try:
            run_virtual(lambda seed=seed: _one(make, random.Random(seed), within_sec), seed=seed)  # type: ignore[misc]
        except BaseException as error:
            error.add_note(f"stress_start_cancel failed with seed {seed}; replay: seeds=range({seed}, {seed + 1})")
            raise


async def _one(make: Callable[[], Actor], dice: random.Random, within_sec: float) -> None:
    before = _tasks()
    spec = SupervisorSpec(
        "stress",
        (ActorSpec("subject", make, backoff=Backoff(0.01, 1.0, 0.01, 0.0), shutdown_sec=1.0),),
        intensity=_PATIENT,
        kill_sec=5.0,
    )
    with anyio.fail_after(within_sec):
        with anyio.CancelScope() as scope:
            async with Supervisor(spec, world=World(dice=dice.random)) as tree:
                await _disturb(tree, scope, dice)
    for _ in range(3):
        await checkpoint()
    left = _tasks() - before
    assert left <= 0, f"{left} tasks were left behind"


async def _disturb(tree: Supervisor, scope: anyio.CancelScope, dice: random.Random) -> None:
    for _ in range(dice.randrange(3)):
        await _wait_a_moment(dice)
        await tree.restart("stress/subject")
    await _wait_a_moment(dice)
    match dice.randrange(3):
        case 0:
            scope.cancel()
        case 1:
            tree.stop(now=True)
        case _:
            pass  # leave the block: the ordinary stop


async def _wait_a_moment(dice: random.Random) -> None:
    """Now and then some virtual time, else just a few turns of the scheduler: most races live there."""
    if dice.random() < 0.5:
        await anyio.sleep(dice.random() * 10)
    for _ in range(dice.randrange(12)):
        await checkpoint()


def _tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living
