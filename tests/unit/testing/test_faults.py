"""Faults between a process and the server in memory."""

from __future__ import annotations

import random

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack
from pyoco_runtime.testing.faults import Faults, Lost, Slow
from pyoco_runtime.testing.memory_jetstream import EPOCH, MemoryJetStream

RUN = RunSnapshot(run_id="r-1", flow_name="flow", status=RunStatus.PENDING)
JOB = Job(run_id="r-1", flow_name="flow", tag="default", submitted_at=EPOCH)


async def test_a_lost_request_did_nothing_and_a_lost_answer_did() -> None:
    """The caller sees the same error; the next call goes well."""
    server = MemoryJetStream()
    process = server.process("p")
    server.faults.next("run_store.create", Lost.BEFORE, Lost.AFTER)
    with pytest.raises(NatsUnavailable):
        await process.run_store.create(RUN)
    assert server.snapshot("r-1") is None
    with pytest.raises(NatsUnavailable):
        await process.run_store.create(RUN)
    stored = server.snapshot("r-1")
    assert stored is not None
    await process.run_store.update(evolve(RUN, status=RunStatus.RUNNING), stored.revision)


async def test_a_refusal_can_be_lost_too() -> None:
    """Who gets no answer does not learn of a conflict."""
    server = MemoryJetStream()
    process = server.process("p")
    server.faults.next("run_store.update", Lost.AFTER, None)
    with pytest.raises(NatsUnavailable):
        await process.run_store.update(RUN, 7)
    with pytest.raises(RevisionConflict):
        await process.run_store.update(RUN, 7)


async def test_a_lost_ack_settles_all_the_same() -> None:
    """The job is gone although settle raised."""
    server = MemoryJetStream()
    process = server.process("p")
    seq = await process.work_queue.publish(JOB)
    async with process.work_queue.pulling("default") as puller:
        found = await puller.wait()
    server.faults.next("settle", Lost.AFTER)
    with pytest.raises(NatsUnavailable):
        await found.settle(Ack())
    assert not await process.inspector.holds(seq)


async def test_a_delivery_that_is_lost_comes_again_after_the_ack_wait() -> None:
    """Taken or waited for: the server thinks that it is in good hands."""
    server = MemoryJetStream()
    process = server.process("p")
    seq = await process.work_queue.publish(JOB)
    server.faults.next("take", Lost.AFTER)
    server.faults.next("wait", Lost.AFTER)
    async with process.work_queue.pulling("default") as puller:
        with pytest.raises(NatsUnavailable):
            await puller.take(1)
        with pytest.raises(NatsUnavailable):
            await puller.wait()
        assert (await puller.wait()).attempt == Attempt(seq, 3)
        assert round(anyio.current_time()) == 60


async def test_a_slow_call_takes_its_time_and_past_the_time_out_it_is_lost() -> None:
    """In virtual seconds."""
    server = MemoryJetStream()
    process = server.process("p")
    server.faults.next("run_store.get", Slow(3.0), Slow(60.0))
    await process.run_store.get("r-1")
    assert round(anyio.current_time(), 6) == 3.0
    with pytest.raises(NatsUnavailable):
        await process.run_store.get("r-1")
    assert round(anyio.current_time(), 6) == 8.0


async def test_a_conflict_is_a_write_of_somebody_else_with_the_same_value() -> None:
    """The snapshot is as it was, and its revision is not."""
    server = MemoryJetStream()
    process = server.process("p")
    revision = await process.run_store.create(RUN)
    server.faults.conflict_next("r-1")
    with pytest.raises(RevisionConflict):
        await process.run_store.update(RUN, revision)
    found = await process.run_store.get("r-1")
    assert found is not None
    assert (found.snapshot, found.revision) == (RUN, revision + 1)
    await process.run_store.update(RUN, found.revision)


async def test_a_job_can_be_redelivered_while_somebody_has_it() -> None:
    """As if its signs of life had come too late."""
    server = MemoryJetStream()
    process = server.process("p")
    seq = await process.work_queue.publish(JOB)
    async with process.work_queue.pulling("default") as puller:
        await puller.wait()
        server.faults.redeliver_now(seq)
        assert (await puller.wait()).attempt == Attempt(seq, 2)
        assert anyio.current_time() < 1


async def test_a_lost_watch_stays_lost() -> None:
    """A new one must be opened."""
    server = MemoryJetStream()
    process = server.process("p")
    async with process.run_store.watching() as watch:
        await watch.choose(frozenset({"r-1"}))
        server.faults.next("run_store.watch_next", Lost.BEFORE)
        await process.run_store.create(RUN)
        for _ in range(2):
            with pytest.raises(NatsUnavailable):
                await watch.next()


def test_rates_are_seeded_and_about_right() -> None:
    """A rate for one kind, a rate for all, and calm."""
    faults = Faults(random.Random(1))
    faults.rate("settle", Lost.AFTER, 0.5)
    faults.rate(None, Slow(2.0), 0.1)
    drawn = [faults.draw("settle") for _ in range(1000)]
    assert 450 < sum(trip.lost is Lost.AFTER for trip in drawn) < 550
    others = [faults.draw("take") for _ in range(1000)]
    assert not any(trip.lost for trip in others)
    slow = [trip.going_sec + trip.coming_sec for trip in others if trip.going_sec + trip.coming_sec > 0]
    assert 70 < len(slow) < 130
    assert max(slow) <= 2.0
    faults.calm()
    assert not any(trip.lost or trip.going_sec for trip in (faults.draw("settle") for _ in range(100)))
