"""The laws about runs over the log of the server in memory."""

from __future__ import annotations

from attrs import evolve

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack
from pyoco_runtime.testing.memory_jetstream import EPOCH, MemoryJetStream
from pyoco_runtime.testing.run_laws import broken_laws

RUN = RunSnapshot(run_id="r-1", flow_name="flow", status=RunStatus.PENDING)
RUNNING = evolve(RUN, status=RunStatus.RUNNING, attempt=Attempt(1, 2))
DONE = evolve(RUNNING, status=RunStatus.COMPLETED)


async def _acked(server: MemoryJetStream, data: Job | bytes) -> None:
    process = server.process("p")
    if isinstance(data, Job):
        await process.work_queue.publish(data)
    else:
        server.send("default", data)
    async with process.work_queue.pulling("default") as puller:
        await (await puller.wait()).settle(Ack())


JOB = Job(run_id="r-1", flow_name="flow", tag="default", submitted_at=EPOCH)


async def test_a_lawful_run_breaks_nothing() -> None:
    """Nor do an orphan, garbage and a refused write."""
    server = MemoryJetStream()
    store = server.process("p").run_store
    await store.update(DONE, await store.update(RUNNING, await store.create(RUN)))
    await _acked(server, JOB)
    await _acked(server, evolve(JOB, run_id="orphan"))
    await _acked(server, b"garbage")
    assert broken_laws(server.log) == []


async def test_a_terminal_run_that_changes_is_told() -> None:
    """By whomever it is changed."""
    server = MemoryJetStream()
    store = server.process("p").run_store
    await store.update(RUNNING, await store.create(DONE))
    (sentence,) = broken_laws(server.log)
    assert "was COMPLETED and changed" in sentence


async def test_an_early_ack_is_told() -> None:
    """Before the terminal write the job must stay on the queue."""
    server = MemoryJetStream()
    await server.process("p").run_store.create(RUNNING)
    await _acked(server, JOB)
    (sentence,) = broken_laws(server.log)
    assert "was acked while RUNNING" in sentence


async def test_an_attempt_that_goes_back_is_told() -> None:
    """A stale owner wrote over a newer one."""
    server = MemoryJetStream()
    store = server.process("p").run_store
    await store.update(evolve(RUNNING, attempt=Attempt(1, 1)), await store.create(RUNNING))
    (sentence,) = broken_laws(server.log)
    assert "went back from attempt 1.2 to 1.1" in sentence
