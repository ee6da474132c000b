"""The worker registry."""

from __future__ import annotations

import json

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState
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


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.registry.publish(_record(world))
        await process.reconnect()
        await process.registry.publish(_record(world))
