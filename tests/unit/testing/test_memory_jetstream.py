"""The server in memory: its clock, its processes and how they are lost."""

from __future__ import annotations

import random
from contextlib import suppress

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack, Nak, Term
from pyoco_runtime.ports import DeadLetters, Link, QueueInspector, RunStore, WheelStore, WorkerRegistry, WorkQueue
from pyoco_runtime.testing.faults import Faults
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import EPOCH, MemoryJetStream
from pyoco_runtime.testing.memory_log import JobDelivered, JobPublished, JobSettled
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.virtual_time import run_virtual


def job(run_id: str = "r-1", tag: str = "default") -> Job:
    return Job(run_id=run_id, flow_name="flow", tag=tag, submitted_at=EPOCH)


def run(run_id: str = "r-1", status: RunStatus = RunStatus.PENDING) -> RunSnapshot:
    return RunSnapshot(run_id=run_id, flow_name="flow", status=status)


async def test_a_process_has_every_port() -> None:
    """mypy checks the signatures here."""
    process = MemoryJetStream().process("p")
    ports: tuple[Link, RunStore, WorkQueue, QueueInspector, WorkerRegistry, DeadLetters, WheelStore] = (
        process.link,
        process.run_store,
        process.work_queue,
        process.inspector,
        process.registry,
        process.dead_letters,
        process.wheels,
    )
    assert ports[0].is_up


async def test_the_ack_wait_passes_to_the_moment() -> None:
    """Deliveries come at 0, 30, 60 ... s, each with the next count, and stop after the last."""
    server = MemoryJetStream(consumer=ConsumerSettings(ack_wait_sec=30.0, max_deliver=4))
    process = server.process("p")
    seq = await process.work_queue.publish(job())
    async with process.work_queue.pulling("default") as puller:
        with anyio.move_on_after(1000):
            while True:
                found = await puller.wait()
                assert found.is_last == (found.attempt.delivery == 4)
    times = [(round(fact.at - EPOCH, 6), fact.delivery) for fact in server.log.of(JobDelivered)]
    assert times == [(0.0, 1), (30.0, 2), (60.0, 3), (90.0, 4)]
    assert [stuck.seq for stuck in await process.inspector.stuck()] == [seq]


async def test_who_waits_learns_of_a_redelivery_that_began_after_the_wait() -> None:
    """The alarm of the one who waits is set anew when somebody else takes a job."""
    server = MemoryJetStream()
    process, other = server.process("p"), server.process("q")
    async with (
        process.work_queue.pulling("default") as puller,
        other.work_queue.pulling("default") as second,
        anyio.create_task_group() as tasks,
    ):
        got: list[tuple[int, int]] = []

        async def wait() -> None:
            got.append(((await puller.wait()).attempt.delivery, round(anyio.current_time())))

        await other.work_queue.publish(job("a"))
        await other.work_queue.publish(job("b"))
        held = await second.take(2)
        tasks.start_soon(wait)
        await anyio.sleep(10)
        await held[1].settle(Ack())
        await held[0].in_progress()
    assert got == [(2, 40)]


async def test_who_waits_learns_of_a_shorter_delay() -> None:
    """A NAK with a delay rings before the ack wait that was the next alarm."""
    server = MemoryJetStream()
    process, other = server.process("p"), server.process("q")
    async with process.work_queue.pulling("default") as puller, anyio.create_task_group() as tasks:
        await other.work_queue.publish(job())
        held = await puller.wait()

        async def give_back() -> None:
            await anyio.sleep(3)
            await held.settle(Nak(2.0))

        tasks.start_soon(give_back)
        assert (await puller.wait()).attempt.delivery == 2
        assert round(anyio.current_time()) == 5


async def test_no_process_is_served_before_one_that_waits_longer() -> None:
    """Requests stand in line over all processes."""
    server = MemoryJetStream()
    got: list[str] = []

    async def wait(process: MemoryProcess) -> None:
        async with process.work_queue.pulling("default") as puller:
            await puller.wait()
            got.append(process.name)

    async with anyio.create_task_group() as tasks:
        for name in ("a", "b", "c"):
            tasks.start_soon(wait, server.process(name))
            await anyio.sleep(1)
        publisher = server.process("publisher")
        for number in range(3):
            await publisher.work_queue.publish(job(f"r-{number}"))
            await anyio.sleep(1)
    assert got == ["a", "b", "c"]


async def test_copies_are_recognised_for_two_minutes() -> None:
    """Then the same id is a new message; after a restart it is one as soon as the first is gone."""
    server = MemoryJetStream()
    process = server.process("p")
    first = await process.work_queue.publish(job())
    await anyio.sleep(119)
    assert await process.work_queue.publish(job()) == first
    await anyio.sleep(2)
    second = await process.work_queue.publish(job())
    assert second == first + 1
    await process.inspector.discard(second)
    assert await process.work_queue.publish(job()) == second
    server.restart()
    process.reconnect()
    assert await process.work_queue.publish(job()) == second + 1
    assert [fact.is_copy for fact in server.log.of(JobPublished)] == [False, True, False, True, False]


async def test_a_job_is_found_only_around_the_time_of_its_submission() -> None:
    """As with the real queue, which would have to read everything else."""
    server = MemoryJetStream()
    process = server.process("p")
    await anyio.sleep(100)
    seq = await process.work_queue.publish(job())
    assert await process.inspector.find("r-1", "default", EPOCH) == seq
    assert await process.inspector.find("r-1", "default", EPOCH + 104) == seq
    assert await process.inspector.find("r-1", "default", EPOCH - 100) is None
    assert await process.inspector.find("r-1", "default", EPOCH + 200) is None


# -- processes --------------------------------------------------------------------------------------------------------


async def test_a_crash_leaves_deliveries_unacked_and_pulls_nowhere() -> None:
    """The next job goes to somebody alive at once; the one that it held comes after the ack wait."""
    server = MemoryJetStream()
    victim, heir = server.process("victim"), server.process("heir")
    held = await victim.work_queue.publish(job("held"))
    failed: list[BaseException] = []

    async def work() -> None:
        async with victim.work_queue.pulling("default") as puller:
            await puller.wait()
            try:
                await puller.wait()
            except NatsUnavailable as error:
                failed.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await anyio.sleep(1)
        victim.crash()
        fresh = await heir.work_queue.publish(job("fresh"))
        async with heir.work_queue.pulling("default") as puller:
            assert (await puller.wait()).attempt == Attempt(fresh, 1)
            assert anyio.current_time() < 2
            assert (await puller.wait()).attempt == Attempt(held, 2)
            assert round(anyio.current_time()) == 30
    assert len(failed) == 1


async def test_a_crashed_process_reaches_nobody_ever_again() -> None:
    """Whatever its tasks still try, and whatever its link is told; a new process of the same name is another one."""
    server = MemoryJetStream()
    process = server.process("p")
    await process.run_store.create(run())
    process.crash()
    process.reconnect()
    process.link.declare_up()
    with pytest.raises(NatsUnavailable, match="gone"):
        await process.run_store.get("r-1")
    assert await server.process("p").run_store.get("r-1") is not None


async def test_a_cancelled_wait_of_a_crashed_process_gives_nothing_back() -> None:
    """Its clean-up runs on, as tasks do in a test, and must not reach the server."""
    server = MemoryJetStream()
    process, other = server.process("p"), server.process("q")
    async with process.work_queue.pulling("default") as puller, anyio.create_task_group() as tasks:
        tasks.start_soon(puller.wait)
        await anyio.sleep(1)
        await other.work_queue.publish(job())
        process.crash()
        tasks.cancel_scope.cancel()
    assert list(server.log.of(JobSettled)) == []


async def test_a_call_under_way_when_the_connection_is_lost_fails_and_may_have_happened() -> None:
    """Over many seeds both kinds are seen, and the caller cannot tell them apart."""

    answered: list[int] = []

    async def once(seed: int) -> bool:
        server = MemoryJetStream(faults=Faults(random.Random(seed), jitter_sec=1.0))
        process = server.process("p")
        async with anyio.create_task_group() as tasks:

            async def create() -> None:
                with suppress(NatsUnavailable):
                    await process.run_store.create(run())
                    answered.append(seed)

            tasks.start_soon(create)
            await anyio.sleep(random.Random(f"moment {seed}").random() * 0.5)
            process.disconnect()
        return server.snapshot("r-1") is not None

    happened = {seed: await once(seed) for seed in range(50)}
    assert {happened[seed] for seed in range(50) if seed not in answered} == {True, False}
    assert all(happened[seed] for seed in answered)


async def test_a_disconnected_process_fails_fast_until_it_is_reconnected() -> None:
    """The link says so to those who listen, and deliveries from before can still be settled."""
    server = MemoryJetStream()
    process = server.process("p")
    told: list[bool] = []
    process.link.on_change(lambda: told.append(process.link.is_up))
    seq = await process.work_queue.publish(job())
    async with process.work_queue.pulling("default") as puller:
        held = await puller.wait()
    process.disconnect()
    with pytest.raises(NatsUnavailable, match="lost"):
        await held.settle(Ack())
    assert await server.process("q").inspector.holds(seq)
    process.reconnect()
    await held.settle(Ack())
    assert not await process.inspector.holds(seq)
    assert told == [False, True]


# -- the log ----------------------------------------------------------------------------------------------------------


async def test_the_log_tells_everything_in_order() -> None:
    """Versions, settlements and who was late."""
    server = MemoryJetStream()
    process = server.process("p")
    revision = await process.run_store.create(run())
    await process.run_store.update(run(status=RunStatus.RUNNING), revision)
    seq = await process.work_queue.publish(job())
    async with process.work_queue.pulling("default") as puller:
        stale = await puller.wait()
        await stale.settle(Nak(1.0))
        current = await puller.wait()
        await stale.settle(Term("stale"))
        await current.settle(Ack())
    assert server.log.snapshots("r-1") == [run(), run(status=RunStatus.RUNNING)]
    assert server.log.settlements(seq) == [Nak(1.0), Term("stale"), Ack()]
    assert [fact.is_late for fact in server.log.of(JobSettled)] == [False, True, True]
    assert {fact.by for fact in server.log.of(JobSettled)} == {"p"}


def test_a_seed_replays_exactly() -> None:
    """The same seed gives the same facts at the same times; other seeds give others."""

    def trace(seed: int) -> str:
        server = MemoryJetStream(faults=Faults(random.Random(seed), jitter_sec=0.1))

        async def main() -> None:
            async with anyio.create_task_group() as tasks:
                for name in ("a", "b", "c"):
                    tasks.start_soon(_busy, server.process(name))

        run_virtual(main, seed=seed)
        return repr(server.log.facts)

    assert [trace(seed) for seed in range(10)] == [trace(seed) for seed in range(10)]
    assert len({trace(seed) for seed in range(10)}) == 10


async def _busy(process: MemoryProcess) -> None:
    async with process.work_queue.pulling("default") as puller:
        for number in range(5):
            await process.work_queue.publish(job(f"{process.name}-{number}"))
            await process.run_store.create(evolve(run(f"{process.name}-{number}"), worker_id=process.name))
            await (await puller.wait()).settle(Ack())
