"""A simple worker on the server in memory, with faults, crashes and lost connections: the laws hold for every seed."""

from __future__ import annotations

import random

import anyio
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, RunExists
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack
from pyoco_runtime.ports import Delivery
from pyoco_runtime.testing.faults import Faults, Lost, Slow
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import EPOCH, MemoryJetStream
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.run_laws import broken_laws
from pyoco_runtime.testing.virtual_time import run_virtual

RUNS = [f"r-{number}" for number in range(8)]


def _server(seed: int) -> MemoryJetStream:
    faults = Faults(random.Random(seed), jitter_sec=0.05)
    for fault, probability in ((Lost.BEFORE, 0.05), (Lost.AFTER, 0.05), (Slow(8.0), 0.05)):
        faults.rate(None, fault, probability)
    return MemoryJetStream(faults=faults, consumer=ConsumerSettings(ack_wait_sec=10.0, max_deliver=-1))


async def _submit(process: MemoryProcess) -> None:
    for run_id in RUNS:
        await _persist_create(process, RunSnapshot(run_id=run_id, flow_name="flow", status=RunStatus.PENDING))
        await _persist_publish(process, Job(run_id=run_id, flow_name="flow", tag="default", submitted_at=EPOCH))


async def _persist_create(process: MemoryProcess, run: RunSnapshot) -> None:
    while True:
        try:
            await process.run_store.create(run)
            return
        except NatsUnavailable:
            await anyio.sleep(0.5)
        except RunExists:
            return


async def _persist_publish(process: MemoryProcess, job: Job) -> None:
    while True:
        try:
            await process.work_queue.publish(job)
            return
        except NatsUnavailable:
            await anyio.sleep(0.5)


async def _work(process: MemoryProcess) -> None:
    """Take jobs for ever; whatever goes wrong, the ack wait brings the job to somebody again."""
    while True:
        try:
            async with process.work_queue.pulling("default") as puller:
                while True:
                    await _one(process, await puller.wait())
        except (NatsUnavailable, RevisionConflict):
            await anyio.sleep(0.5)


async def _one(process: MemoryProcess, delivery: Delivery) -> None:
    assert isinstance(delivery.job, Job)
    found = await process.run_store.get(delivery.job.run_id)
    assert found is not None
    if not found.snapshot.status.is_terminal:
        if found.snapshot.attempt is not None and found.snapshot.attempt > delivery.attempt:
            return
        mine = evolve(found.snapshot, status=RunStatus.RUNNING, attempt=delivery.attempt)
        revision = await process.run_store.update(mine, found.revision)
        await anyio.sleep(2.0)
        await delivery.in_progress()
        await process.run_store.update(evolve(mine, status=RunStatus.COMPLETED), revision)
    await delivery.settle(Ack())


async def _trouble(server: MemoryJetStream, name: str, dice: random.Random) -> None:
    """Lives of one worker, each ended by a crash, with a lost connection now and then."""
    while True:
        process = server.process(name)
        async with anyio.create_task_group() as life:
            life.start_soon(_work, process)
            for _ in range(dice.randrange(1, 4)):
                await anyio.sleep(dice.uniform(1, 20))
                process.disconnect()
                await anyio.sleep(dice.uniform(0, 5))
                process.reconnect()
            await anyio.sleep(dice.uniform(0, 10))
            process.crash()
            life.cancel_scope.cancel()


def _simulate(seed: int) -> str:
    server = _server(seed)
    dice = random.Random(f"trouble {seed}")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(_trouble, server, name, dice)
            await _submit(server.process("gateway"))
            with anyio.fail_after(3600):
                while server.work.messages:  # noqa: ASYNC110 (an observer from outside)
                    await anyio.sleep(1)
            tasks.cancel_scope.cancel()

    run_virtual(main, seed=seed)
    assert broken_laws(server.log) == []
    for run_id in RUNS:
        stored = server.snapshot(run_id)
        assert stored is not None
        assert stored.snapshot.status is RunStatus.COMPLETED
    return repr(server.log.facts)


def test_every_run_ends_once_whatever_happens() -> None:
    """Crashes, lost connections, lost requests, lost answers, slow calls; forty seeds."""
    for seed in range(40):
        try:
            _simulate(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_trouble_replays_exactly() -> None:
    """The seed decides everything."""
    assert [_simulate(seed) for seed in range(5)] == [_simulate(seed) for seed in range(5)]
