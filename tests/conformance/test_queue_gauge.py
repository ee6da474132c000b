"""The queue gauge."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.settlement import Ack, Nak
from pyoco_runtime.ports import TagDepth
from tests.conformance.world import Consumer, Process, World, eventually


async def _depth(process: Process, tag: str) -> TagDepth | None:
    """What the gauge says about one tag; the server is shared with other tests."""
    found = [each for each in await process.gauge.read() if each.tag == tag]
    assert len(found) < 2
    return found[0] if found else None


async def _numbers(process: Process, tag: str) -> tuple[int, int]:
    depth = await _depth(process, tag)
    assert depth is not None
    assert (depth.oldest_waiting_at is None) == (depth.waiting == 0)
    return depth.waiting, depth.in_hand


async def test_jobs_that_nobody_reads_wait(world: World) -> None:
    """A tag without a worker is seen as soon as it has a job; the age is that of its first."""
    async with world.process() as process:
        assert await _depth(process, world.tag) is None
        before = world.now()
        await process.work_queue.publish(world.job())
        after = world.now()
        for _ in range(2):
            await process.work_queue.publish(world.job())
        depth = await _depth(process, world.tag)
        assert depth is not None
        assert (depth.waiting, depth.in_hand) == (3, 0)
        assert depth.oldest_waiting_at is not None
        assert before - 1 <= depth.oldest_waiting_at <= after + 1


async def test_what_is_taken_is_in_hand_until_it_is_settled(world: World) -> None:
    """And a tag whose queue is empty is still there while it has a consumer."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        assert await _numbers(process, world.tag) == (0, 0)
        for _ in range(3):
            await process.work_queue.publish(world.job())
        assert await _numbers(process, world.tag) == (3, 0)
        taken = await puller.take(2)
        assert len(taken) == 2
        assert await _numbers(process, world.tag) == (1, 2)
        await taken[0].settle(Ack())

        async def is_acked() -> bool:
            return await _numbers(process, world.tag) == (1, 1)

        await eventually(is_acked)
        await taken[1].settle(Nak(3600.0))
        assert await _numbers(process, world.tag) == (1, 1)
        [last] = await puller.take(1)
        await last.settle(Ack())

        async def is_empty() -> bool:
            return await _numbers(process, world.tag) == (0, 1)

        await eventually(is_empty)


async def test_the_oldest_of_those_that_wait_is_younger_than_those_in_hand(world: World) -> None:
    """What a worker has for long does not ask for more workers."""
    async with world.process(Consumer(max_ack_pending=1)) as process:
        async with process.work_queue.pulling(world.tag) as puller:
            await process.work_queue.publish(world.job())
            await puller.wait()
            await anyio.sleep(0.05)
            between = world.now()
            await anyio.sleep(0.05)
            await process.work_queue.publish(world.job())
            depth = await _depth(process, world.tag)
        assert depth is not None
        assert (depth.waiting, depth.in_hand) == (1, 1)
        assert depth.oldest_waiting_at is not None
        assert depth.oldest_waiting_at > between


async def test_tags_come_by_name(world: World) -> None:
    """With and without a consumer."""
    tags = [f"{world.tag}-{name}" for name in ("b", "c", "a")]
    async with world.process() as process:
        for tag in tags:
            await process.work_queue.publish(world.job(tag=tag))
        async with process.work_queue.pulling(tags[1]):
            found = [each.tag for each in await process.gauge.read() if each.tag.startswith(world.tag)]
        assert found == sorted(tags)


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.gauge.read()
        await process.reconnect()
        await process.gauge.read()
