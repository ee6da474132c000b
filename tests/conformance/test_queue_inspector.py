"""The queue inspector: what the reconciler sees of the queue."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.job import InvalidJob
from pyoco_runtime.model.settlement import Ack, Nak
from tests.conformance.world import Consumer, World, eventually


async def test_a_job_is_held_until_it_is_settled(world: World) -> None:
    """Also while somebody works on it."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        assert await process.inspector.holds(seq)
        found = await puller.wait()
        assert await process.inspector.holds(seq)
        await found.settle(Ack())

        async def is_gone() -> bool:
            return not await process.inspector.holds(seq)

        await eventually(is_gone)
        assert not await process.inspector.holds(seq + 1_000_000)


async def test_a_job_is_found_by_its_run(world: World) -> None:
    """Among others of its tag, before and while somebody works on it; not under another tag."""
    jobs = [world.job() for _ in range(5)]
    async with world.process() as process:
        published = [await process.work_queue.publish(job) for job in jobs]
        await world.send(world.tag, b"garbage")
        find = process.inspector.find
        assert await find(jobs[3].run_id, world.tag, jobs[3].submitted_at) == published[3]
        assert await find(jobs[3].run_id, f"{world.tag}-other", jobs[3].submitted_at) is None
        assert await find(world.run_id(), world.tag, jobs[3].submitted_at) is None
        async with process.work_queue.pulling(world.tag) as puller:
            found = await puller.take(4)
            assert await find(jobs[3].run_id, world.tag, jobs[3].submitted_at) == published[3]
            await found[3].settle(Ack())

        async def is_gone() -> bool:
            return await find(jobs[3].run_id, world.tag, jobs[3].submitted_at) is None

        await eventually(is_gone)


async def test_stuck_jobs_are_found_among_the_others_without_anybody_pulling(world: World) -> None:
    """Used up: stuck. Waiting, delivered or to be delivered again: not."""
    async with world.process(Consumer(ack_wait_sec=0.3, max_deliver=1)) as process, world.process() as other:
        other_tag = f"{world.tag}-other"
        async with other.work_queue.pulling(other_tag) as patient:
            await other.work_queue.publish(world.job(tag=other_tag))
            await (await patient.wait()).settle(Nak(20.0))
        async with process.work_queue.pulling(world.tag) as puller:
            used_up = [await process.work_queue.publish(world.job()), await world.send(world.tag, b"garbage")]
            assert len(await puller.take(2)) == 2
        waiting = await process.work_queue.publish(world.job())

        async def both_are_stuck() -> bool:
            return [each.seq for each in await process.inspector.stuck() if each.tag == world.tag] == used_up

        await eventually(both_are_stuck)
        stuck = [each for each in await process.inspector.stuck() if each.tag.startswith(world.tag)]
        assert [each.seq for each in stuck] == used_up
        assert isinstance(stuck[1].job, InvalidJob)
        assert stuck[1].subject == f"pyoco.work.{world.tag}"
        for seq in (*used_up, waiting):
            await process.inspector.discard(seq)


async def test_a_discarded_job_is_gone_for_everybody(world: World) -> None:
    """Stuck, waiting or under way; one that is gone already is fine."""
    async with world.process(Consumer(ack_wait_sec=0.3)) as process, process.work_queue.pulling(world.tag) as puller:
        held = await process.work_queue.publish(world.job())
        await puller.wait()
        waiting = await process.work_queue.publish(world.job())
        for seq in (held, waiting, waiting):
            await process.inspector.discard(seq)
            assert not await process.inspector.holds(seq)
        with anyio.move_on_after(1.0) as waited:
            await puller.wait()
        assert waited.cancelled_caught
        assert [each for each in await process.inspector.stuck() if each.tag == world.tag] == []


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """Nobody waits for a time-out, and `not there` is never said without looking."""
    async with world.process() as process:
        await process.disconnect()
        with anyio.fail_after(1):
            for call in (
                lambda: process.inspector.holds(1),
                lambda: process.inspector.find("r", world.tag, 0.0),
                lambda: process.inspector.stuck(),
                lambda: process.inspector.discard(1),
            ):
                with pytest.raises(NatsUnavailable):
                    await call()
