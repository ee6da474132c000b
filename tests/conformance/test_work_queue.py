"""The work queue: who gets a job, for how long, and what becomes of it."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob
from pyoco_runtime.model.settlement import Ack, Nak, Term
from pyoco_runtime.ports import Delivery, Puller
from tests.conformance.world import Consumer, Process, World, eventually

SHORT = Consumer(ack_wait_sec=0.5)
SOON_SEC = 3.0  # well under an ack wait of 30 s, well over what anything takes that need not wait


async def _soon(puller: Puller) -> Delivery:
    with anyio.fail_after(SOON_SEC):
        return await puller.wait()


async def _nothing_for(puller: Puller, sec: float) -> None:
    with anyio.move_on_after(sec) as waited:
        found = await puller.wait()
        raise AssertionError(f"{found.attempt} came, and nothing should")
    assert waited.cancelled_caught


async def _is_gone(process: Process, seq: int) -> bool:
    return not await process.inspector.holds(seq)


async def test_a_job_is_delivered_as_it_was_published(world: World) -> None:
    """With its sequence, its delivery count, its tag and its subject."""
    job = world.job()
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(job)
        found = await _soon(puller)
        assert found.job == job
        assert found.attempt == Attempt(seq, 1)
        assert (found.tag, found.subject) == (world.tag, f"pyoco.work.{world.tag}")
        assert (found.is_last, found.ack_wait_sec) == (False, 30.0)
        await found.settle(Ack())


async def test_a_job_that_was_there_before_its_consumer_is_delivered(world: World) -> None:
    """The gateway may accept runs before the first worker of their tag exists."""
    async with world.process() as process:
        seq = await process.work_queue.publish(world.job())
        async with process.work_queue.pulling(world.tag) as puller:
            assert (await _soon(puller)).attempt == Attempt(seq, 1)


async def test_a_job_is_queued_once_however_often_it_is_published(world: World) -> None:
    """A retry after a lost answer cannot double it, not even after it was acked."""
    job = world.job()
    async with world.process() as process, world.process() as other:
        seq = await process.work_queue.publish(job)
        assert await other.work_queue.publish(job) == seq
        async with process.work_queue.pulling(world.tag) as puller:
            (found,) = await puller.take(10)
            await found.settle(Ack())
            assert await process.work_queue.publish(job) == seq
            assert await puller.take(10) == []


async def test_take_gives_what_waits_and_never_more_than_asked_for(world: World) -> None:
    """In the order of publication; none at once if there is none."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        with anyio.fail_after(SOON_SEC):
            assert await puller.take(3) == []
            published = [await process.work_queue.publish(world.job()) for _ in range(5)]
            taken = [found.attempt.seq for found in await puller.take(3)]
            assert taken == published[:3]
            assert [found.attempt.seq for found in await puller.take(3)] == published[3:]
            assert await puller.take(3) == []


async def test_wait_returns_when_a_job_comes(world: World) -> None:
    """Also one that another process publishes long after the wait began."""
    async with (
        world.process() as process,
        world.process() as other,
        process.work_queue.pulling(world.tag) as puller,
        anyio.create_task_group() as tasks,
    ):

        async def publish() -> None:
            await anyio.sleep(0.2)
            await other.work_queue.publish(world.job())

        tasks.start_soon(publish)
        assert (await _soon(puller)).attempt.delivery == 1


async def test_each_job_goes_to_one_of_those_who_wait(world: World) -> None:
    """Two processes wait, two jobs come: one each."""
    got: list[int] = []
    async with (
        world.process() as one,
        world.process() as two,
        world.process() as publisher,
        one.work_queue.pulling(world.tag) as first,
        two.work_queue.pulling(world.tag) as second,
    ):

        async def wait(puller: Puller) -> None:
            got.append((await _soon(puller)).attempt.seq)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, first)
            tasks.start_soon(wait, second)
            await anyio.sleep(0.1)
            published = [await publisher.work_queue.publish(world.job()) for _ in range(2)]
    assert sorted(got) == published


async def test_tags_are_apart(world: World) -> None:
    """A puller sees jobs of its own tag only."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        await process.work_queue.publish(world.job(tag=f"{world.tag}-other"))
        seq = await process.work_queue.publish(world.job())
        assert (await _soon(puller)).attempt.seq == seq
        assert await puller.take(10) == []


async def test_a_message_that_is_no_job_is_delivered_as_such(world: World) -> None:
    """With its bytes and with what could be read of it."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        await world.send(world.tag, b'{"run_id": "r-1"}')
        found = await _soon(puller)
        assert isinstance(found.job, InvalidJob)
        assert (found.job.payload, found.job.run_id) == (b'{"run_id": "r-1"}', "r-1")
        await found.settle(Term("invalid_job"))


# -- settling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settlement", [Ack(), Term("invalid_job")], ids=["ack", "term"])
async def test_an_acked_or_terminated_job_is_gone(world: World, settlement: Ack | Term) -> None:
    """As soon as settle has returned, from the queue too; settling it again does no harm."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        found = await _soon(puller)
        await found.settle(settlement)
        await eventually(lambda: _is_gone(process, seq))
        await found.settle(settlement)
        await _nothing_for(puller, 1.2)


async def test_a_job_that_is_given_back_comes_again_at_once(world: World) -> None:
    """With the next delivery count, to whoever waits."""
    async with (
        world.process() as process,
        world.process() as other,
        process.work_queue.pulling(world.tag) as puller,
        other.work_queue.pulling(world.tag) as second,
    ):
        seq = await process.work_queue.publish(world.job())
        await (await _soon(puller)).settle(Nak())
        assert (await _soon(second)).attempt == Attempt(seq, 2)


async def test_a_job_that_is_given_back_with_a_delay_comes_again_after_it(world: World) -> None:
    """Not before, and long before the ack wait."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        found = await _soon(puller)
        began = anyio.current_time()
        await found.settle(Nak(0.5))
        assert await puller.take(1) == []
        again = await _soon(puller)
        assert again.attempt == Attempt(seq, 2)
        assert 0.45 < anyio.current_time() - began < 1.5


async def test_a_job_without_a_sign_of_life_comes_again_after_the_ack_wait(world: World) -> None:
    """To whoever waits, with the next delivery count, and again and again."""
    async with (
        world.process(SHORT) as process,
        world.process() as other,
        process.work_queue.pulling(world.tag) as puller,
        other.work_queue.pulling(world.tag) as second,
    ):
        seq = await process.work_queue.publish(world.job())
        assert (await _soon(puller)).attempt == Attempt(seq, 1)
        began = anyio.current_time()
        assert (await _soon(second)).attempt == Attempt(seq, 2)
        assert 0.45 < anyio.current_time() - began < 1.5
        assert (await _soon(puller)).attempt == Attempt(seq, 3)


async def test_a_sign_of_life_keeps_the_job(world: World) -> None:
    """For as long as they come; then the ack wait counts from the last one."""
    async with (
        world.process(SHORT) as process,
        world.process() as other,
        process.work_queue.pulling(world.tag) as puller,
        other.work_queue.pulling(world.tag) as second,
    ):
        seq = await process.work_queue.publish(world.job())
        found = await _soon(puller)
        for _ in range(8):
            await _nothing_for(second, 0.2)
            await found.in_progress()
        began = anyio.current_time()
        assert (await _soon(second)).attempt == Attempt(seq, 2)
        assert 0.4 < anyio.current_time() - began < 1.5


async def test_redelivered_jobs_come_before_new_ones(world: World) -> None:
    """The older run has waited longer."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        first = await process.work_queue.publish(world.job())
        second = await process.work_queue.publish(world.job())
        await (await _soon(puller)).settle(Nak())
        await anyio.sleep(0.1)
        assert [(await _soon(puller)).attempt.seq, (await _soon(puller)).attempt.seq] == [first, second]


async def test_the_ack_of_a_stale_owner_deletes_the_job(world: World) -> None:
    """The server does no fencing: that is what attempts in the snapshot are for."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        stale = await _soon(puller)
        current = await _soon(puller)
        assert current.attempt == Attempt(seq, 2)
        await stale.settle(Ack())
        await eventually(lambda: _is_gone(process, seq))
        await current.settle(Ack())
        await _nothing_for(puller, 1.2)


async def test_the_nak_of_a_stale_owner_takes_the_job_from_the_current_one(world: World) -> None:
    """No fencing here either: a stale owner must settle nothing."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        stale = await _soon(puller)
        assert (await _soon(puller)).attempt == Attempt(seq, 2)
        await stale.settle(Nak())
        with anyio.fail_after(0.3):
            assert (await puller.wait()).attempt == Attempt(seq, 3)


async def test_the_last_delivery_says_so_and_then_the_job_is_stuck(world: World) -> None:
    """Delivered as often as it may be, it stays on the queue and nobody gets it any more."""
    async with (
        world.process(Consumer(ack_wait_sec=0.5, max_deliver=2)) as process,
        process.work_queue.pulling(world.tag) as puller,
    ):
        job = world.job()
        seq = await process.work_queue.publish(job)
        first, last = await _soon(puller), await _soon(puller)
        assert (first.is_last, last.is_last) == (False, True)
        assert last.attempt == Attempt(seq, 2)
        await _nothing_for(puller, 1.2)
        assert await process.inspector.holds(seq)
        (stuck,) = [each for each in await process.inspector.stuck() if each.tag == world.tag]
        assert (stuck.seq, stuck.tag, stuck.job) == (seq, world.tag, job)
        await last.settle(Ack())
        await eventually(lambda: _is_gone(process, seq))


async def test_a_sign_of_life_after_the_ack_wait_comes_too_late(world: World) -> None:
    """Also when nobody has taken the job yet: it goes to the next who asks."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        found = await _soon(puller)
        await anyio.sleep(0.9)  # nobody pulls, so there is nothing to wait for
        await found.in_progress()
        assert [each.attempt for each in await puller.take(1)] == [Attempt(seq, 2)]


async def test_a_delay_after_the_ack_wait_is_kept(world: World) -> None:
    """As long as nobody has taken the job yet."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        seq = await process.work_queue.publish(world.job())
        found = await _soon(puller)
        await anyio.sleep(0.9)  # nobody pulls, so there is nothing to wait for
        await found.settle(Nak(1.0))
        assert await puller.take(1) == []
        assert (await _soon(puller)).attempt == Attempt(seq, 2)


async def test_a_last_delivery_that_is_given_back_is_stuck_once_somebody_pulls(world: World) -> None:
    """The server does not look before."""
    async with (
        world.process(Consumer(ack_wait_sec=0.3, max_deliver=2)) as process,
        process.work_queue.pulling(world.tag) as puller,
    ):
        seq = await process.work_queue.publish(world.job())
        await _soon(puller)
        await (await _soon(puller)).settle(Nak())
        assert [each for each in await process.inspector.stuck() if each.tag == world.tag] == []
        assert await puller.take(1) == []

        async def is_stuck() -> bool:
            return [each.seq for each in await process.inspector.stuck() if each.tag == world.tag] == [seq]

        await eventually(is_stuck)


async def test_the_sign_of_life_of_a_stale_owner_counts_for_the_current_one(world: World) -> None:
    """No fencing: the server knows messages, not owners."""
    async with world.process(SHORT) as process, process.work_queue.pulling(world.tag) as puller:
        await process.work_queue.publish(world.job())
        stale, _ = await _soon(puller), await _soon(puller)
        for _ in range(5):
            await _nothing_for(puller, 0.2)
            await stale.in_progress()
        assert (await _soon(puller)).attempt.delivery == 3


async def test_a_first_delivery_is_never_the_last(world: World) -> None:
    """With one delivery allowed there is nothing to hand over yet."""
    async with world.process(Consumer(max_deliver=1)) as process, process.work_queue.pulling(world.tag) as puller:
        await process.work_queue.publish(world.job())
        assert not (await _soon(puller)).is_last


async def test_no_more_jobs_are_out_than_the_consumer_allows(world: World) -> None:
    """The next one comes when one of them is settled."""
    async with world.process(Consumer(max_ack_pending=2)) as process, process.work_queue.pulling(world.tag) as puller:
        published = [await process.work_queue.publish(world.job()) for _ in range(3)]
        out = await puller.take(3)
        assert len(out) == 2
        await _nothing_for(puller, 0.3)
        await out[0].settle(Ack())
        assert (await _soon(puller)).attempt == Attempt(published[2], 1)


async def test_a_consumer_that_exists_keeps_its_settings(world: World) -> None:
    """Whoever comes later works with what is there."""
    async with (
        world.process(SHORT) as first,
        world.process(Consumer(ack_wait_sec=7.0)) as second,
        first.work_queue.pulling(world.tag),
        second.work_queue.pulling(world.tag) as puller,
    ):
        await first.work_queue.publish(world.job())
        found = await _soon(puller)
        assert found.ack_wait_sec == 0.5
        await found.settle(Ack())


# -- cancelled and disconnected ---------------------------------------------------------------------------------------


async def test_a_cancelled_wait_swallows_no_job(world: World) -> None:
    """What is published after it, or while it is cancelled, somebody else gets long before the ack wait."""
    async with (
        world.process() as process,
        world.process() as other,
        process.work_queue.pulling(world.tag) as puller,
        other.work_queue.pulling(world.tag) as second,
    ):
        for pause_sec in (0.0, 0.001, 0.002, 0.005, 0.05):
            with anyio.move_on_after(pause_sec):
                found = await puller.wait()
                raise AssertionError(f"{found.attempt} came from nowhere")
            seq = await other.work_queue.publish(world.job())
            found = await _soon(second)
            assert found.attempt.seq == seq
            await found.settle(Ack())


async def test_a_wait_cancelled_while_a_job_comes_gives_it_back(world: World) -> None:
    """It is returned, or comes again at once; never is it out of reach until the ack wait."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        for turns in range(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.work_queue.publish, world.job())
                with anyio.CancelScope() as scope:
                    tasks.start_soon(_cancel_later, scope, turns)
                    found = await puller.wait()
            if scope.cancelled_caught:
                found = await _soon(puller)
            await found.settle(Ack())
            assert await puller.take(1) == []


async def _cancel_later(scope: anyio.CancelScope, turns: int) -> None:
    for _ in range(turns):
        await checkpoint()
    scope.cancel()


async def test_a_cancelled_take_gives_back_what_came(world: World) -> None:
    """At whatever moment it is cancelled."""
    async with world.process() as process, process.work_queue.pulling(world.tag) as puller:
        for turns in range(20):
            published = [await process.work_queue.publish(world.job()) for _ in range(2)]
            async with anyio.create_task_group() as tasks:
                found: list[Delivery] = []
                with anyio.CancelScope() as scope:
                    tasks.start_soon(_cancel_later, scope, turns)
                    found = await puller.take(2)
                scope.cancel()
            while len(found) < 2:
                found.append(await _soon(puller))
            assert sorted(each.attempt.seq for each in found) == published
            for each in found:
                await each.settle(Ack())


async def test_who_waits_is_told_when_the_connection_is_lost(world: World) -> None:
    """And works again on a new puller after the reconnect, as does settling what was delivered before."""
    async with world.process() as process:
        async with process.work_queue.pulling(world.tag) as puller, anyio.create_task_group() as tasks:
            first = await process.work_queue.publish(world.job())
            held = await _soon(puller)
            tasks.start_soon(process.disconnect)
            with pytest.raises(NatsUnavailable), anyio.fail_after(SOON_SEC):
                await puller.wait()
        with anyio.fail_after(SOON_SEC):
            for call in (held.in_progress, lambda: held.settle(Ack()), lambda: process.work_queue.publish(world.job())):
                with pytest.raises(NatsUnavailable):
                    await call()
            with pytest.raises(NatsUnavailable):
                async with process.work_queue.pulling(world.tag):
                    pass
        await process.reconnect()
        async with process.work_queue.pulling(world.tag) as puller:
            second = await process.work_queue.publish(world.job())
            assert (await _soon(puller)).attempt == Attempt(second, 1)
            await held.in_progress()
            await held.settle(Ack())
            await eventually(lambda: _is_gone(process, first))
