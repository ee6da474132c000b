"""The reconciler on a real nats-server: each kind of loss, two at once, and what must be left alone."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pyoco_runtime.actors.link import Link
from pyoco_runtime.actors.reconciler import Reconciler
from pyoco_runtime.core import ActorSpec, Event, Exited, Supervisor, SupervisorSpec
from pyoco_runtime.jetstream.dead_letters import NatsDeadLetters
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.queue_inspector import NatsQueueInspector
from pyoco_runtime.jetstream.resources import Names
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.jetstream.work_queue import ConsumerSettings, NatsWorkQueue
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.reconcile import Limits
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack
from pyoco_runtime.model.wire import letter_from
from pyoco_runtime.ports import CaughtUp, Delivery, RunChanged
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.names import NAMES

assert isinstance(NAMES, Names)
LIMITS = Limits(
    pending_sec=1.0, silent_sec=0.8, round_sec=0.2, looks=50, stuck_sec=1.0, stuck_gap_sec=0.5, letter_grace_sec=5.0
)
TWICE = ConsumerSettings(0.3, 2, 200)


class Bench:
    """What a gateway and a worker would do, over a connection of their own."""

    def __init__(self, link: NatsLink) -> None:
        self.runs = NatsRunStore(link, NAMES.runs_bucket, 262144)
        self.queue = NatsWorkQueue(link, NAMES.work_subject_prefix, TWICE)
        self.inspector = NatsQueueInspector(link, NAMES.work_subject_prefix)
        self._link = link

    async def store(self, run_id: str, status: RunStatus = RunStatus.PENDING, **fields: Any) -> RunSnapshot:
        """Store the snapshot of a new run."""
        values = {"tag": "default", "submitted_at": time.time(), **fields}
        snapshot = RunSnapshot(run_id=run_id, flow_name="flow", status=status, **values)
        await self.runs.create(snapshot)
        return snapshot

    async def publish(self, run_id: str) -> int:
        """Put its job on the queue."""
        return await self.queue.publish(Job(run_id=run_id, flow_name="flow", tag="default", submitted_at=time.time()))

    async def take(self, times: int = 1) -> Delivery:
        """Take the next job, so many times, without a word to the queue."""
        async with self.queue.pulling("default") as puller:
            for _ in range(times):
                found = await puller.wait()
        return found

    async def ended(self, *run_ids: str) -> dict[str, RunSnapshot]:
        """Wait until all of these are over."""
        found: dict[str, RunSnapshot] = {}
        async with self.runs.changes() as changes:
            while set(run_ids) - set(found):
                change = await changes.next()
                if isinstance(change, RunChanged) and change.stored.snapshot.status.is_terminal:
                    found[change.stored.snapshot.run_id] = change.stored.snapshot
        return found

    async def statuses(self) -> dict[str, RunStatus]:
        """All runs as they are."""
        found: dict[str, RunStatus] = {}
        async with self.runs.changes() as changes:
            while not isinstance(change := await changes.next(), CaughtUp):
                if isinstance(change, RunChanged):
                    found[change.stored.snapshot.run_id] = change.stored.snapshot.status
        return found

    async def letters(self, count: int) -> list[DeadLetter]:
        """Wait until there are so many, then a moment for more, and return all."""
        client = self._link.client().jetstream()
        while (await client.stream_info(NAMES.dlq_stream)).state.messages < count:  # noqa: ASYNC110 (nobody tells)
            await anyio.sleep(0.05)
        await anyio.sleep(1.0)
        info = (await client.stream_info(NAMES.dlq_stream)).state
        found = [await client.get_msg(NAMES.dlq_stream, seq) for seq in range(info.first_seq, info.last_seq + 1)]
        return [letter_from(message.data or b"") for message in found]

    async def gone(self, *seqs: int) -> None:
        """Wait until these messages are off the queue."""
        for seq in seqs:
            while await self.inspector.holds(seq):  # noqa: ASYNC110 (nobody tells)
                await anyio.sleep(0.05)


Test = Callable[[Bench, RunningServer], Awaitable[None]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with nats_server(tmp_path / "store") as running:
        yield running


@asynccontextmanager
async def reconcilers(server: RunningServer, count: int = 1) -> AsyncIterator[None]:
    """Run so many, each with a connection of its own; none of them may crash."""
    events: list[Event] = []
    async with AsyncExitStack() as stack:
        for number in range(count):
            link = NatsLink(lambda: (server.url,), f"gateway-{number}", NAMES)
            make = _maker(link)
            children = (ActorSpec("link", lambda link=link: Link(link)), ActorSpec("reconciler", make))  # type: ignore[misc]  # mypy does not infer lambdas with defaults
            tree = Supervisor(SupervisorSpec("root", children))
            tree.feed.listen(events.append)
            await stack.enter_async_context(tree)
            await link.wait_up()
        yield
    assert not [event for event in events if isinstance(event, Exited) and event.crash is not None]


def _maker(link: NatsLink) -> Callable[[], Reconciler]:
    runs = NatsRunStore(link, NAMES.runs_bucket, 262144)
    inspector = NatsQueueInspector(link, NAMES.work_subject_prefix)
    letters = NatsDeadLetters(link, NAMES.dlq_subject_prefix, NAMES.dlq_stream)
    return lambda: Reconciler(runs, inspector, letters, link, time.time, LIMITS)


def on_bench(test: Test) -> Callable[[RunningServer], None]:
    """Run an async test on a bench of its own."""

    @functools.wraps(test)
    def run(server: RunningServer) -> None:
        async def main() -> None:
            link = NatsLink(lambda: (server.url,), "test", NAMES)
            tree = Supervisor(SupervisorSpec("bench", (ActorSpec("link", lambda: Link(link)),)))
            with anyio.fail_after(60):
                async with tree:
                    await link.wait_up()
                    await test(Bench(link), server)

        anyio.run(main)

    del run.__wrapped__  # pytest would look for fixtures named like the test's arguments
    return run


@on_bench
async def test_a_run_whose_job_never_reached_the_queue_fails(bench: Bench, server: RunningServer) -> None:
    """With a reason and a letter; the one beside it waits on."""
    async with reconcilers(server):
        await bench.store("waits")
        await bench.publish("waits")
        await bench.store("lost")
        await bench.store("stopped", RunStatus.CANCELLING, cancel_requested_at=time.time())
        found = await bench.ended("lost", "stopped")
        assert found["lost"].status is RunStatus.FAILED
        assert (found["lost"].error or "").startswith("lost_job: ")
        assert found["stopped"].status is RunStatus.CANCELLED
        letters = await bench.letters(2)
        assert {(letter.reason, letter.run_id) for letter in letters} == {
            (Reason.LOST_JOB, "lost"),
            (Reason.LOST_JOB, "stopped"),
        }
        assert len(letters) == 2
        assert (await bench.statuses())["waits"] is RunStatus.PENDING


@on_bench
async def test_a_running_run_whose_job_is_gone_fails(bench: Bench, server: RunningServer) -> None:
    """Its worker is silent, and the message was acked or purged; the one whose message is there is left alone."""
    await bench.publish("lost")
    lost = await bench.take()
    await bench.store("lost", RunStatus.RUNNING, attempt=lost.attempt, worker_id="w-1")
    await lost.settle(Ack())
    await bench.publish("held")
    held = await bench.take()
    await bench.store("held", RunStatus.RUNNING, attempt=held.attempt, worker_id="w-1")
    async with reconcilers(server):
        found = (await bench.ended("lost"))["lost"]
        assert found.status is RunStatus.FAILED
        assert (found.error or "").startswith("lost_delivery: worker w-1 ")
        (letter,) = await bench.letters(1)
        assert (letter.reason, letter.run_id, letter.worker_id) == (Reason.LOST_JOB, "lost", "w-1")
        assert (await bench.statuses())["held"] is RunStatus.RUNNING
        assert await bench.inspector.holds(held.attempt.seq)


@on_bench
async def test_a_job_whose_deliveries_are_used_up_is_cleared(bench: Bench, server: RunningServer) -> None:
    """Of a run that is open, of one that is over, and of one that is gone, once a worker has asked for more."""
    seqs = [await bench.publish(run_id) for run_id in ("open", "stopped", "over", "gone")]
    async with bench.queue.pulling("default") as puller:
        taken = 0
        while taken < 2 * len(seqs):
            taken += len(await puller.take(len(seqs)) or [await puller.wait()])
        with anyio.move_on_after(1.0):
            await puller.wait()  # the server gives a job up only when somebody pulls
    await bench.store("open", RunStatus.RUNNING)
    await bench.store("stopped", RunStatus.CANCELLING)
    await bench.store("over", RunStatus.COMPLETED)
    async with reconcilers(server):
        found = await bench.ended("open", "stopped")
        assert found["open"].status is RunStatus.FAILED
        assert (found["open"].error or "").startswith("max_deliver_exceeded: ")
        assert found["stopped"].status is RunStatus.CANCELLED
        await bench.gone(*seqs)
        letters = await bench.letters(3)
        assert sorted((letter.run_id or "", letter.reason) for letter in letters) == [
            ("gone", Reason.ORPHANED_JOB),
            ("open", Reason.MAX_DELIVER_EXCEEDED),
            ("stopped", Reason.MAX_DELIVER_EXCEEDED),
        ]


@on_bench
async def test_two_reconcilers_write_one_end_and_one_letter(bench: Bench, server: RunningServer) -> None:
    """Each run once, whoever is quicker."""
    lost = [f"lost-{number}" for number in range(40)]
    async with reconcilers(server, 2):
        for run_id in lost:
            await bench.store(run_id)
        await bench.ended(*lost)
        assert sorted(letter.run_id or "" for letter in await bench.letters(40)) == sorted(lost)


@on_bench
async def test_a_long_queue_of_waiting_runs_is_left_alone(bench: Bench, server: RunningServer) -> None:
    """Two reconcilers have looked for each of them, and found it; only the one without a job has ended."""
    waiting = [f"waits-{number}" for number in range(80)]
    for run_id in waiting:
        await bench.store(run_id)
        await bench.publish(run_id)
    async with reconcilers(server, 2):
        await anyio.sleep(3.0)  # the limit, and the rounds for all of them
        await bench.store("lost")
        await bench.ended("lost")
        statuses = await bench.statuses()
    assert {statuses[run_id] for run_id in waiting} == {RunStatus.PENDING}
    assert len(await bench.letters(1)) == 1


@on_bench
async def test_it_goes_on_after_the_server_was_killed(bench: Bench, server: RunningServer) -> None:
    """With all that was stored, and with what came since."""
    async with reconcilers(server):
        await bench.store("before")
        await anyio.to_thread.run_sync(server.kill)
        await anyio.to_thread.run_sync(server.start)
        await bench._link.wait_up()
        await bench.store("after")
        await bench.ended("before", "after")
        assert {letter.run_id for letter in await bench.letters(2)} == {"before", "after"}
