"""The board of runs and those who follow it."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from pyoco_runtime.errors import Dropped
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.run_follower import OneRunFollower, RunFollower
from tests.unit.actors.support import in_virtual_time, settle_down


def run(run_id: str, status: RunStatus = RunStatus.RUNNING, **fields: Any) -> RunSnapshot:
    return RunSnapshot(run_id=run_id, flow_name="f", status=status, updated_at=1.0, **fields)


def board(*runs: RunSnapshot) -> RunBoard:
    """One that is up to date with these."""
    made = RunBoard()
    made.begin_load()
    for at, each in enumerate(runs, 1):
        made.put(each, at)
    made.end_load()
    return made


def everything(_: RunNews) -> bool:
    return True


async def soon(follower: RunFollower | OneRunFollower) -> RunNews:
    with anyio.fail_after(1):
        return await follower.next()


async def silent(follower: RunFollower | OneRunFollower) -> bool:
    with anyio.move_on_after(1):
        await follower.next()
        return False
    return True


@in_virtual_time
async def test_a_follower_hears_what_it_wants_in_order() -> None:
    """And nothing else, and no snapshots."""
    it = board(run("a"))
    with it.following(lambda news: news.run_id != "b") as follower:
        for at, run_id in enumerate(("a", "b", "c"), 10):
            it.put(run(run_id), at)
        it.remove("a", 13)
        heard = [await soon(follower) for _ in range(3)]
        assert [(each.run_id, each.revision) for each in heard] == [("a", 10), ("c", 11 + 1), ("a", 13)]
        assert heard[0].before is not None
        assert heard[2].after is None
        assert all(each.snapshot is None for each in heard)
        assert await silent(follower)


@in_virtual_time
async def test_a_slow_follower_is_dropped_and_no_other_is() -> None:
    """Its buffer is emptied at once, and it hears nothing more."""
    it = board()
    with it.following(everything, capacity=3) as slow, it.following(everything) as quick:
        for at in range(1, 6):
            it.put(run("a"), at)
        for _ in range(2):
            with pytest.raises(Dropped):
                await slow.next()
        assert not slow._news
        assert [(await soon(quick)).revision for _ in range(5)] == [1, 2, 3, 4, 5]


@in_virtual_time
async def test_a_follower_that_waits_is_told_that_it_was_dropped() -> None:
    """It does not wait for ever."""
    it = RunBoard()
    it.begin_load()
    with it.following(everything) as follower:
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(Dropped):
                    await follower.next()

            group.start_soon(wait)
            await settle_down()
            it.put(run("a"), 1)
            await settle_down()
            it.end_load()  # the first picture is not told piece by piece


@in_virtual_time
async def test_whoever_comes_back_hears_what_it_missed() -> None:
    """Each news after the revision that it heard of last, then those to come."""
    it = board(run("a"), run("b"))
    for at in range(3, 8):
        it.put(run("a"), at)
    with it.following(everything, after_revision=4) as follower:
        it.put(run("b"), 8)
        assert [(await soon(follower)).revision for _ in range(4)] == [5, 6, 7, 8]


@pytest.mark.parametrize("after", [0, 5, 99_999])
@in_virtual_time
async def test_whoever_comes_back_too_late_is_dropped(after: int) -> None:
    """Or from a bucket that counted further than this one."""
    it = board(*(run(f"r-{n}") for n in range(2000)))
    with it.following(everything, after_revision=after) as follower, pytest.raises(Dropped):
        await follower.next()


@in_virtual_time
async def test_nobody_can_come_back_over_runs_that_vanished_unheard() -> None:
    """Nobody knows at which revision they went."""
    it = board(run("a"), run("b"))
    with it.following(everything) as follower:
        it.lose("test", 1.0)
        it.begin_load()
        it.put(run("a"), 1)
        it.end_load()
        news = await soon(follower)
        assert (news.run_id, news.after, news.is_late) == ("b", None, True)
    with it.following(everything, after_revision=2) as follower, pytest.raises(Dropped):
        await follower.next()


@in_virtual_time
async def test_a_reload_tells_only_what_has_changed() -> None:
    """Those who follow are not told everything anew, nor dropped."""
    it = board(*(run(f"r-{n}") for n in range(500)))
    with it.following(everything) as follower:
        it.lose("test", 1.0)
        it.begin_load()
        for n in range(500):
            if n != 7:
                it.put(run(f"r-{n}"), n + 1)
        it.put(run("r-7", RunStatus.COMPLETED), 501)
        it.end_load()
        assert (await soon(follower)).run_id == "r-7"
        assert await silent(follower)


@in_virtual_time
async def test_a_follower_of_one_run_gets_the_latest_with_its_snapshot() -> None:
    """However many there were, and none of other runs."""
    it = board(run("a"), run("b"))
    with it.following_run("a") as follower:
        for at in range(10, 2000):
            it.put(run("a", params={"at": at}), at)
            it.put(run("b"), at + 5000)
        news = await soon(follower)
        assert news.revision == 1999
        assert news.snapshot is not None
        assert news.snapshot.params == {"at": 1999}
        assert await silent(follower)
        it.remove("a", 9000)
        assert (await soon(follower)).after is None


@in_virtual_time
async def test_followers_are_counted_and_forgotten() -> None:
    """Of lists and of runs; nothing is left of them."""
    it = board()
    with it.following(everything), it.following_run("a"), it.following_run("a"), it.following_run("b"):
        assert it.followers == 4
    assert it.followers == 0
    assert not it._of_one
    assert not it._followers


@in_virtual_time
async def test_a_cancelled_wait_loses_nothing() -> None:
    """A time-out around `next`, as for SSE heartbeats."""
    it = board()
    with it.following(everything) as many, it.following_run("a") as one:
        assert await silent(many)
        assert await silent(one)
        it.put(run("a"), 1)
        assert (await soon(many)).revision == (await soon(one)).revision == 1


@in_virtual_time
async def test_only_what_ends_while_we_listen_is_tallied() -> None:
    """Not what was over when we came, nor what ended while the feed was lost."""
    done = RunStatus.COMPLETED
    it = board(run("old", done), run("a"), run("b"))
    it.put(run("a", done), 4)
    it.put(run("a", done, error="again"), 5)
    it.lose("test", 1.0)
    it.begin_load()
    it.put(run("old", done), 1)
    it.put(run("a", done, error="again"), 5)
    it.put(run("b", done), 6)
    it.end_load()
    it.put(run("new", done), 7)
    assert it.tally.ended() == {("f", done): 2}


@in_virtual_time
async def test_one_can_wait_until_ones_own_write_is_listed() -> None:
    """At once if it is already, or if the board is behind: then the answer says so."""
    it = board(run("a"))
    with anyio.fail_after(1):
        await it.heard_of(1)
    async with anyio.create_task_group() as group:

        async def look() -> None:
            await it.heard_of(3)
            assert len(it.index.query(RunFilter(), 5).runs) == 2

        group.start_soon(look)
        await settle_down()
        it.put(run("a"), 2)
        await settle_down()
        it.put(run("b"), 3)
    async with anyio.create_task_group() as group:
        group.start_soon(it.heard_of, 99)
        await settle_down()
        it.lose("test", 1.0)


def test_those_who_wait_for_other_runs_cost_nothing() -> None:
    """Ten thousand of them, and news are told as fast as with none: one lookup, not ten thousand calls."""
    it = board()
    idle = [it.following_run(f"idle-{n}") for n in range(10_000)]
    for each in idle:
        each.__enter__()
    calls: list[float] = []
    for at in range(1, 1001):
        began = time.perf_counter()
        it.put(run("a"), at)
        calls.append(time.perf_counter() - began)
    assert sorted(calls)[500] < 0.001  # ten thousand calls would take longer
    for each in idle:
        each.__exit__(None, None, None)
    assert it.followers == 0
