"""Turns that are fair between lanes."""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.fair_turns import FairTurns
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.actors.support import in_virtual_time, settle_down


@in_virtual_time
async def test_a_flooded_lane_keeps_no_other_waiting() -> None:
    """A thousand in one lane, and the only one of another has the next turn but one; the newest is first in a lane."""
    turns = FairTurns(1)
    served: list[str] = []

    async def take(lane: str, name: str) -> None:
        async with turns.turn(lane):
            served.append(name)
            await anyio.sleep(1)

    async with anyio.create_task_group() as group:
        for n in range(1000):
            group.start_soon(take, "flood", f"flood-{n}")
            await settle_down()
        group.start_soon(take, "quiet", "quiet-0")
        await settle_down()
        await anyio.sleep(10)
        group.start_soon(take, "flood", "flood-late")
        await anyio.sleep(3)
        group.cancel_scope.cancel()
    assert served[:4] == ["flood-0", "flood-999", "quiet-0", "flood-998"]
    assert served.index("flood-late") < 15


@given(
    limit=st.integers(1, 3),
    seed=st.integers(0, 10_000),
    plan=st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 3), st.floats(0, 3), st.floats(0.1, 6)), min_size=1, max_size=30
    ),
)
def test_no_turn_is_lost_and_none_is_made(limit: int, seed: int, plan: list[tuple[str, float, float, float]]) -> None:
    """Whoever is cancelled and when: never more than the limit at work, and all turns are there in the end."""

    async def main() -> None:
        turns = FairTurns(limit)
        at_work = 0

        async def take(lane: str, start: float, work: float, patience: float) -> None:
            nonlocal at_work
            await anyio.sleep(start)
            with anyio.move_on_after(patience):
                async with turns.turn(lane):
                    at_work += 1
                    try:
                        assert at_work <= limit
                        await anyio.sleep(work)
                    finally:
                        at_work -= 1

        async with anyio.create_task_group() as group:
            for each in plan:
                group.start_soon(take, *each)
        assert turns._free == limit
        assert not turns._lanes

    run_virtual(main, seed=seed)
