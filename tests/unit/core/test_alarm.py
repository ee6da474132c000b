"""A sleep that others can bring to an end."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.core import Alarm
from pyoco_runtime.testing.virtual_time import run_virtual


async def slept(alarm: Alarm, until: float = float("inf")) -> float:
    """Sleep; returns when it ended."""
    with alarm.until(until):
        await anyio.sleep_forever()
    return anyio.current_time()


async def test_it_ends_at_the_deadline() -> None:
    """Nobody rings."""
    began = anyio.current_time()
    assert await slept(Alarm(), began + 3) == pytest.approx(began + 3)


async def test_it_rings_in_time_for_the_earliest_wish() -> None:
    """Three wishes while it sleeps: the nearest counts, and the later ones do not ring again."""
    alarm, began = Alarm(), anyio.current_time()

    async def wish() -> None:
        await anyio.sleep(1)
        for sec in (5, 2, 4):
            alarm.ring_within(sec)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wish)
        assert await slept(alarm, began + 100) == pytest.approx(began + 3)
        assert await slept(alarm, began + 100) == pytest.approx(began + 100)


async def test_news_that_come_while_it_is_awake_are_kept() -> None:
    """The next sleep ends at once, and the one after that does not."""
    alarm, began = Alarm(), anyio.current_time()
    alarm.ring_within(0)
    await anyio.sleep(1)
    assert await slept(alarm, began + 10) == pytest.approx(began + 1)
    assert await slept(alarm, began + 10) == pytest.approx(began + 10)


async def test_a_block_that_ends_by_itself_keeps_the_wish() -> None:
    """What should ring later still rings."""
    alarm, began = Alarm(), anyio.current_time()
    alarm.ring_within(5)
    with alarm.until():
        await anyio.sleep(1)
    assert await slept(alarm) == pytest.approx(began + 5)


async def test_another_cancellation_passes() -> None:
    """Only its own end is swallowed."""
    alarm = Alarm()
    with anyio.move_on_after(2) as scope:
        await slept(alarm)
        raise AssertionError("it swallowed what was not its own")
    assert scope.cancelled_caught


@given(
    wishes=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), max_size=12),
    naps=st.lists(st.integers(0, 20), max_size=8),
)
def test_every_wish_is_heard_in_time(wishes: list[tuple[int, int]], naps: list[int]) -> None:
    """Whoever wishes at any time for a ring within so long sees the sleeper awake by then, or at the end of its nap."""

    async def main() -> None:
        alarm = Alarm()
        awake: list[tuple[float, float]] = []

        async def sleeper() -> None:
            began = 0.0
            for nap in [*naps, 1000]:
                await anyio.sleep(nap)  # busy
                awake.append((began, anyio.current_time()))
                began = await slept(alarm, anyio.current_time() + 1000)
            awake.append((began, began))

        async def wish(at: int, sec: int) -> None:
            await anyio.sleep(at)
            alarm.ring_within(sec)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleeper)
            for at, sec in wishes:
                tasks.start_soon(wish, at, sec)
        for at, sec in wishes:
            # it wakes at some time after the wish, by then or, if it was busy then, as soon as it sleeps again
            busy_until = max((end for began, end in awake if began <= at + sec <= end), default=at + sec)
            assert any(at <= began <= busy_until + 1e-6 for began, _ in awake), (at, sec, awake)

    run_virtual(main)
