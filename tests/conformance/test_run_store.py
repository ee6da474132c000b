"""The run store: compare-and-set, and the two ways to hear of writes."""

from __future__ import annotations

import json

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, RunExists, Unreadable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.run import RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, RunChanges, RunRemoved, RunWatch, StoredRun
from tests.conformance.world import Process, World

SOON_SEC = 1.0  # longer than any hint takes


async def test_a_run_is_read_as_it_was_written(world: World) -> None:
    """Every field comes back, and the revision is the one that create gave."""
    run = evolve(
        world.run(),
        params={"n": 1, "deep": {"list": [1, None, "日本語"]}},
        tags=("a", "b"),
        tasks={"t": TaskStatus.RUNNING},
        task_records={"t": TaskRecord(state=TaskStatus.RUNNING, started_at=1.5)},
        attempt=Attempt(7, 2),
    )
    async with world.process() as process, world.process() as other:
        revision = await process.run_store.create(run)
        found = await other.run_store.get(run.run_id)
    assert found is not None
    assert (found.snapshot, found.revision) == (run, revision)


async def test_a_run_that_was_never_written_is_none(world: World) -> None:
    """None is a sure answer."""
    async with world.process() as process:
        assert await process.run_store.get(world.run_id()) is None


async def test_a_run_is_created_once(world: World) -> None:
    """The second create is refused and changes nothing."""
    run = world.run()
    async with world.process() as process:
        revision = await process.run_store.create(run)
        with pytest.raises(RunExists):
            await process.run_store.create(evolve(run, flow_name="other"))
        found = await process.run_store.get(run.run_id)
    assert found is not None
    assert (found.snapshot.flow_name, found.revision) == ("flow", revision)


async def test_an_update_needs_the_revision_that_is_there(world: World) -> None:
    """Of two writers that read the same, one wins and the other is told."""
    run = world.run()
    async with world.process() as process, world.process() as other:
        first = await process.run_store.create(run)
        second = await process.run_store.update(evolve(run, status=RunStatus.RUNNING), first)
        assert second > first
        with pytest.raises(RevisionConflict):
            await other.run_store.update(evolve(run, status=RunStatus.CANCELLING), first)
        found = await other.run_store.get(run.run_id)
        assert found is not None
        assert (found.snapshot.status, found.revision) == (RunStatus.RUNNING, second)
        assert await other.run_store.update(evolve(run, status=RunStatus.CANCELLING), second) > second


async def test_revisions_of_other_runs_do_not_matter(world: World) -> None:
    """Writes to one run are no conflict for another."""
    run, neighbour = world.run(), world.run()
    async with world.process() as process:
        revision = await process.run_store.create(run)
        await process.run_store.create(neighbour)
        await process.run_store.update(run, revision)


async def test_a_run_that_is_not_there_cannot_be_updated_or_removed(world: World) -> None:
    """Whatever the revision was, it is not there."""
    async with world.process() as process:
        with pytest.raises(RevisionConflict):
            await process.run_store.update(world.run(), 7)
        with pytest.raises(RevisionConflict):
            await process.run_store.remove(world.run_id(), 7)


async def test_a_removed_run_is_gone_and_may_be_created_again(world: World) -> None:
    """At exactly the revision; the old revision is of no use afterwards."""
    run = world.run()
    async with world.process() as process:
        first = await process.run_store.create(run)
        second = await process.run_store.update(run, first)
        with pytest.raises(RevisionConflict):
            await process.run_store.remove(run.run_id, first)
        assert await process.run_store.get(run.run_id) is not None
        await process.run_store.remove(run.run_id, second)
        assert await process.run_store.get(run.run_id) is None
        with pytest.raises(RevisionConflict):
            await process.run_store.update(run, second)
        assert await process.run_store.create(run) > second


async def test_a_value_that_is_no_snapshot_is_unreadable(world: World) -> None:
    """It is not None: something is there."""
    run_id = world.run_id()
    await world.write_run(run_id, b"not json")
    async with world.process() as process:
        with pytest.raises(Unreadable):
            await process.run_store.get(run_id)


async def test_the_fields_of_other_writers_survive_a_rewrite(world: World) -> None:
    """Another version of the program may know more than we do."""
    run = world.run()
    raw = {"run_id": run.run_id, "flow_name": "flow", "status": "PENDING", "from_the_future": {"x": 1}}
    revision = await world.write_run(run.run_id, json.dumps(raw).encode())
    async with world.process() as process:
        found = await process.run_store.get(run.run_id)
        assert found is not None
        assert found.revision == revision
        await process.run_store.update(evolve(found.snapshot, status=RunStatus.RUNNING), found.revision)
        again = await process.run_store.get(run.run_id)
    assert again is not None
    assert again.snapshot.extra == {"from_the_future": {"x": 1}}


async def test_a_snapshot_over_the_cap_loses_details_and_says_so(world: World) -> None:
    """Outputs go, statuses stay."""
    record = TaskRecord(state=TaskStatus.SUCCEEDED, ended_at=1.0, output="x" * world.max_snapshot_bytes)
    run = evolve(world.run(), tasks={"t": TaskStatus.SUCCEEDED}, task_records={"t": record})
    async with world.process() as process:
        await process.run_store.create(run)
        found = await process.run_store.get(run.run_id)
    assert found is not None
    assert found.snapshot.task_records_truncated
    assert found.snapshot.tasks == run.tasks


# -- hints ------------------------------------------------------------------------------------------------------------


async def test_a_write_to_a_chosen_run_is_heard(world: World) -> None:
    """By whichever process it is written, as soon as choose has returned."""
    run = world.run()
    async with world.process() as process, world.process() as other:
        revision = await other.run_store.create(run)
        async with process.run_store.watching() as watch:
            await watch.choose(frozenset({run.run_id}))
            for status in (RunStatus.RUNNING, RunStatus.CANCELLING, RunStatus.CANCELLED):
                revision = await other.run_store.update(evolve(run, status=status), revision)
                found = None
                while found is None or found.snapshot.status is not status:
                    assert await watch.next() == run.run_id
                    found = await process.run_store.get(run.run_id)


async def test_no_write_after_choose_is_missed(world: World) -> None:
    """When choose has returned the server knows, whichever connection the write comes over."""
    async with world.process() as process, world.process() as other, process.run_store.watching() as watch:
        for _ in range(100):
            run = world.run()
            await watch.choose(frozenset({run.run_id}))
            await other.run_store.create(run)
            with anyio.fail_after(SOON_SEC):
                assert await watch.next() == run.run_id


async def test_what_a_hint_is_about_can_be_read(world: World) -> None:
    """A hint never comes before the write that it is about: who reads then would miss it for ever."""
    async with world.process() as process, world.process() as other, process.run_store.watching() as watch:
        run = world.run()
        revision = await other.run_store.create(run)
        await watch.choose(frozenset({run.run_id}))
        for number in range(100):
            status = (RunStatus.RUNNING, RunStatus.CANCELLING)[number % 2]
            async with anyio.create_task_group() as tasks:
                for _ in range(10):  # the server has other things to store first
                    tasks.start_soon(other.run_store.create, evolve(world.run(), params={"x": "x" * 3000}))
                tasks.start_soon(other.run_store.update, evolve(run, status=status), revision)
                with anyio.fail_after(SOON_SEC):
                    revision = await _read_at_a_hint(process, watch, run.run_id, status)


async def _read_at_a_hint(process: Process, watch: RunWatch, run_id: str, status: RunStatus) -> int:
    while True:
        assert await watch.next() == run_id
        found = await process.run_store.get(run_id)
        if found is not None and found.snapshot.status is status:
            return found.revision


async def test_only_chosen_runs_are_heard(world: World) -> None:
    """A new choice replaces the old one."""
    runs = [world.run() for _ in range(3)]
    async with world.process() as process, process.run_store.watching() as watch:
        await watch.choose(frozenset({runs[0].run_id, runs[1].run_id}))
        await watch.choose(frozenset({runs[1].run_id, runs[2].run_id}))
        for run in runs:
            await process.run_store.create(run)
        heard: set[str] = set()
        while len(heard) < 2:
            heard.add(await watch.next())
        assert heard == {runs[1].run_id, runs[2].run_id}
        await watch.choose(frozenset())
        await world.write_run(runs[1].run_id, b"{}")
        with anyio.move_on_after(SOON_SEC) as waited:
            await watch.next()
        assert waited.cancelled_caught


async def test_a_removal_is_heard(world: World) -> None:
    """A deletion is a write too."""
    run = world.run()
    async with world.process() as process, process.run_store.watching() as watch:
        revision = await process.run_store.create(run)
        await watch.choose(frozenset({run.run_id}))
        await process.run_store.remove(run.run_id, revision)
        while await process.run_store.get(run.run_id) is not None:
            await watch.next()
        with anyio.fail_after(5):
            assert await watch.next() == run.run_id


async def test_a_cancelled_wait_for_a_hint_loses_none(world: World) -> None:
    """Who stops waiting and waits again hears all the same."""
    run = world.run()
    async with world.process() as process, process.run_store.watching() as watch:
        await watch.choose(frozenset({run.run_id}))
        with anyio.move_on_after(0.05):
            await watch.next()
        await process.run_store.create(run)
        with anyio.fail_after(5):
            assert await watch.next() == run.run_id


async def test_a_watch_ends_with_its_connection(world: World) -> None:
    """Whoever waits is told, and a new watch works after the reconnect."""
    run = world.run()
    async with world.process() as process:
        async with process.run_store.watching() as watch, anyio.create_task_group() as tasks:
            await watch.choose(frozenset({run.run_id}))
            tasks.start_soon(process.disconnect)
            with pytest.raises(NatsUnavailable):
                await watch.next()
            with pytest.raises(NatsUnavailable):
                await watch.choose(frozenset())
        await process.reconnect()
        async with process.run_store.watching() as watch:
            await watch.choose(frozenset({run.run_id}))
            await process.run_store.create(run)
            assert await watch.next() == run.run_id


# -- the feed of all --------------------------------------------------------------------------------------------------


async def _until_caught_up(changes: RunChanges) -> list[RunChange]:
    told: list[RunChange] = []
    while not told or not isinstance(told[-1], CaughtUp):
        told.append(await changes.next())
    return told


async def test_the_feed_tells_all_that_is_stored_then_that_it_has(world: World) -> None:
    """Each run once, as it is last; what cannot be read and what is gone is not among them."""
    runs = [world.run() for _ in range(5)]
    gone, garbage = world.run(), world.run_id()
    async with world.process() as process:
        revisions = {run.run_id: await process.run_store.create(run) for run in runs}
        revisions[runs[0].run_id] = await process.run_store.update(
            evolve(runs[0], status=RunStatus.RUNNING), revisions[runs[0].run_id]
        )
        await process.run_store.remove(gone.run_id, await process.run_store.create(gone))
        await world.write_run(garbage, b"garbage")
        async with process.run_store.changes() as changes:
            told = await _until_caught_up(changes)
    stored = [each.stored for each in told if isinstance(each, RunChanged) and each.stored.snapshot.tag == world.tag]
    assert {each.snapshot.run_id: each.revision for each in stored} == revisions
    assert len(stored) == 5
    assert next(each for each in stored if each.snapshot.run_id == runs[0].run_id).snapshot.status is RunStatus.RUNNING


async def test_the_feed_of_an_empty_store_is_caught_up_at_once(world: World) -> None:
    """Also when nothing was ever written by this test."""
    async with world.process() as process, process.run_store.changes() as changes:
        await _until_caught_up(changes)


async def test_the_feed_tells_every_later_write_and_removal_in_order(world: World) -> None:
    """With the revision that the next writer needs."""
    run = world.run()
    async with world.process() as process, world.process() as other, process.run_store.changes() as changes:
        await _until_caught_up(changes)
        first = await other.run_store.create(run)
        assert await changes.next() == RunChanged(StoredRun(run, first))
        second = await other.run_store.update(evolve(run, status=RunStatus.RUNNING), first)
        assert await changes.next() == RunChanged(StoredRun(evolve(run, status=RunStatus.RUNNING), second))
        await world.write_run(world.run_id(), b"garbage")
        await other.run_store.remove(run.run_id, second)
        removed = await changes.next()
    assert isinstance(removed, RunRemoved)
    assert removed.run_id == run.run_id
    assert removed.revision > second


async def test_the_feed_ends_with_its_connection(world: World) -> None:
    """Whoever waits is told."""
    async with world.process() as process:
        async with process.run_store.changes() as changes, anyio.create_task_group() as tasks:
            await _until_caught_up(changes)
            tasks.start_soon(process.disconnect)
            with pytest.raises(NatsUnavailable):
                await changes.next()
        await process.reconnect()
        async with process.run_store.changes() as changes:
            await _until_caught_up(changes)


async def test_everything_fails_fast_while_disconnected(world: World) -> None:
    """Nobody waits for a time-out."""
    run = world.run()
    async with world.process() as process:
        revision = await process.run_store.create(run)
        await process.disconnect()
        with anyio.fail_after(SOON_SEC):
            for call in (
                lambda: process.run_store.get(run.run_id),
                lambda: process.run_store.create(world.run()),
                lambda: process.run_store.update(run, revision),
                lambda: process.run_store.remove(run.run_id, revision),
            ):
                with pytest.raises(NatsUnavailable):
                    await call()
            with pytest.raises(NatsUnavailable):
                async with process.run_store.watching():
                    pass
            with pytest.raises(NatsUnavailable):
                async with process.run_store.changes():
                    pass
        await process.reconnect()
        assert await process.run_store.get(run.run_id) is not None
