"""The worker registry."""

from __future__ import annotations

import json

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, Unreadable
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState
from pyoco_runtime.ports import CaughtUp, WorkerChange, WorkerChanged, WorkerChanges, WorkerRemoved
from tests.conformance.world import World


def _record(world: World) -> WorkerRecord:
    return WorkerRecord(
        worker_id=f"worker-{world.tag}",
        instance_id="i-1",
        state=WorkerState.IDLE,
        tags=(world.tag,),
        last_seen_at=5.0,
        wheel_sync=WheelSync(enabled=True, last_result="ok", selected_wheels=("a-1-py3-none-any.whl",)),
    )


async def test_a_record_is_stored_and_replaced(world: World) -> None:
    """The latest is what is there."""
    record = _record(world)
    async with world.process() as process:
        await process.registry.publish(record)
        assert await world.worker(record.worker_id) == record
        later = evolve(record, state=WorkerState.RUNNING, current_run_id="r-1", last_seen_at=6.0)
        await process.registry.publish(later)
        assert await world.worker(record.worker_id) == later


async def test_what_people_and_other_versions_wrote_survives(world: World) -> None:
    """`hidden` belongs to people; fields that we do not know belong to whoever added them."""
    record = _record(world)
    async with world.process() as process:
        await process.registry.publish(record)
        raw = {"worker_id": record.worker_id, "instance_id": "i-0", "state": "IDLE", "hidden": True, "note": [1]}
        await world.write_worker(record.worker_id, json.dumps(raw).encode())
        await process.registry.publish(record)
        assert await world.worker(record.worker_id) == evolve(record, hidden=True, extra={"note": [1]})
        await process.registry.publish(evolve(record, state=WorkerState.STOPPED_GRACEFUL))
        assert (await world.worker(record.worker_id)).hidden


async def test_a_record_that_cannot_be_read_is_replaced(world: World) -> None:
    """A damaged value must not silence a worker."""
    record = _record(world)
    await world.write_worker(record.worker_id, b"garbage")
    async with world.process() as process:
        await process.registry.publish(record)
        assert await world.worker(record.worker_id) == record


async def test_a_record_can_be_read(world: World) -> None:
    """None is said of workers that nobody knows, and of ids that no worker can have."""
    record = _record(world)
    async with world.process() as process:
        assert await process.registry.get(record.worker_id) is None
        await process.registry.publish(record)
        assert await process.registry.get(record.worker_id) == record
        for strange in ("", "a b", "*", ">", "a..b", "x" * 5000, "日本"):
            assert await process.registry.get(strange) is None
            assert await process.registry.hide(strange, True, 9.0) is None
        await world.remove_worker(record.worker_id)
        assert await process.registry.get(record.worker_id) is None


async def test_a_worker_is_hidden_and_shown_again(world: World) -> None:
    """Only `hidden` and `updated_at` change, and the worker's own updates keep it."""
    record = evolve(_record(world), extra={"note": [1]})
    async with world.process() as gateway, world.process() as worker:
        assert await gateway.registry.hide(record.worker_id, True, 9.0) is None
        await worker.registry.publish(record)
        hidden = evolve(record, hidden=True, updated_at=9.0)
        assert await gateway.registry.hide(record.worker_id, True, 9.0) == hidden
        assert await world.worker(record.worker_id) == hidden
        await worker.registry.publish(evolve(record, last_seen_at=10.0))
        assert await world.worker(record.worker_id) == evolve(record, hidden=True, last_seen_at=10.0)
        shown = await gateway.registry.hide(record.worker_id, False, 11.0)
        assert shown == evolve(record, last_seen_at=10.0, updated_at=11.0)
        await world.remove_worker(record.worker_id)
        assert await gateway.registry.hide(record.worker_id, True, 12.0) is None


async def test_a_worker_that_writes_at_the_same_time_loses_nothing(world: World) -> None:
    """Whoever comes second reads again: neither `hidden` nor a heartbeat is lost."""
    record = _record(world)
    async with world.process() as gateway, world.process() as worker:
        await worker.registry.publish(record)

        async def beat() -> None:
            for at in range(10, 40):
                await worker.registry.publish(evolve(record, last_seen_at=float(at)))

        async with anyio.create_task_group() as group:
            group.start_soon(beat)
            for n in range(20):
                found = await gateway.registry.hide(record.worker_id, n % 2 == 1, float(n))
                assert found is not None
                assert found.hidden is (n % 2 == 1)
        assert await world.worker(record.worker_id) == evolve(
            record, hidden=True, last_seen_at=39.0, updated_at=(await world.worker(record.worker_id)).updated_at
        )


async def test_a_damaged_record_is_neither_shown_nor_hidden(world: World) -> None:
    """It is not taken for an absent one, and it is left as it is."""
    worker_id = f"worker-{world.tag}"
    await world.write_worker(worker_id, b"garbage")
    async with world.process() as process:
        with pytest.raises(Unreadable):
            await process.registry.get(worker_id)
        with pytest.raises(Unreadable):
            await process.registry.hide(worker_id, True, 1.0)


async def test_the_place_of_a_record_says_whose_it_is(world: World) -> None:
    """As the peer reads them."""
    worker_id = f"worker-{world.tag}"
    raw = {"worker_id": "somebody-else", "instance_id": "i", "state": "IDLE"}
    await world.write_worker(worker_id, json.dumps(raw).encode())
    async with world.process() as process:
        found = await process.registry.get(worker_id)
        assert found is not None
        assert found.worker_id == worker_id


async def _next_of(feed: WorkerChanges, worker_id: str) -> WorkerChange:
    """The next change of this worker; the server is shared with other tests."""
    while True:
        change = await feed.next()
        match change:
            case WorkerChanged(record) if record.worker_id == worker_id:
                return change
            case WorkerRemoved(found) if found == worker_id:
                return change


async def test_the_feed_tells_first_what_is_stored_and_then_every_write(world: World) -> None:
    """With rising revisions, in order; what cannot be read is skipped."""
    record = _record(world)
    await world.write_worker(f"{record.worker_id}-bad", b"garbage")
    async with world.process() as process:
        await process.registry.publish(record)
        async with process.registry.changes() as feed:
            stored = []
            while not isinstance(change := await feed.next(), CaughtUp):
                stored.append(change)
            mine = [each for each in stored if isinstance(each, WorkerChanged) and each.record == record]
            assert len(mine) == 1
            assert not [each for each in stored if isinstance(each, WorkerChanged) and "-bad" in each.record.worker_id]
            await process.registry.publish(evolve(record, last_seen_at=7.0))
            await process.registry.hide(record.worker_id, True, 8.0)
            await world.write_worker(record.worker_id, b"garbage")
            await world.remove_worker(record.worker_id)
            seen = [await _next_of(feed, record.worker_id) for _ in range(3)]
        first, second, third = seen
        assert isinstance(first, WorkerChanged)
        assert first.record == evolve(record, last_seen_at=7.0)
        assert isinstance(second, WorkerChanged)
        assert second.record.hidden
        assert isinstance(third, WorkerRemoved)
        revisions = [mine[0].revision, first.revision, second.revision, third.revision]
        assert revisions == sorted(set(revisions))


async def test_a_feed_of_an_empty_place_is_caught_up_at_once_and_ends_with_the_connection(world: World) -> None:
    """Whoever follows opens a new one after the reconnect."""
    async with world.process() as process:
        async with process.registry.changes() as feed:
            while not isinstance(await feed.next(), CaughtUp):
                pass
            await process.disconnect()
            with pytest.raises(NatsUnavailable), anyio.fail_after(1):
                await feed.next()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            async with process.registry.changes():
                pass
        await process.reconnect()
        async with process.registry.changes() as feed:
            await feed.next()


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.registry.publish(_record(world))
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.registry.get("w")
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.registry.hide("w", True, 1.0)
        await process.reconnect()
        await process.registry.publish(_record(world))
