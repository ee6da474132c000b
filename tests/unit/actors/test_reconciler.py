"""The reconciler on memory ports, in virtual time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.actors.reconciler import Reconciler
from pyoco_runtime.core import ActorSpec, Event, Exited, Supervisor, SupervisorSpec
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import Completed
from pyoco_runtime.model.reconcile import Limits
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import beaten, cancelling, ended
from pyoco_runtime.model.wire import job_to, snapshot_to
from pyoco_runtime.ports import Delivery, QueueInspector, StuckJob
from pyoco_runtime.testing.faults import Fault, Faults, Lost, Operation, Slow
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.memory_log import JobDiscarded, LetterStored, SnapshotStored
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.run_laws import broken_laws
from pyoco_runtime.testing.stress import stress_start_cancel
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.actors.support import in_virtual_time

TWICE = ConsumerSettings(ack_wait_sec=30.0, max_deliver=2)
LATE_SEC = 200.0  # the limits, a few rounds and two questions for leftovers
HOURS_SEC = 6 * 3600.0


class Watched:
    """An inspector that counts, does something during a look, and refuses to look for some runs."""

    def __init__(self, inner: QueueInspector) -> None:
        self.searches: list[float] = []
        self.searched: list[str] = []
        self.questions = 0
        self.busy_sec = 0.0
        self.during: Callable[[], None] = lambda: None
        self.refused: set[str] = set()
        self._inner = inner

    async def holds(self, seq: int) -> bool:
        found = await self._inner.holds(seq)
        self.during()
        return found

    async def find(self, run_id: str, tag: str, submitted_at: float) -> int | None:
        began = anyio.current_time()
        self.searches.append(began)
        self.searched.append(run_id)
        if run_id in self.refused:
            raise NatsUnavailable("JetStream refused: bad subject")
        found = await self._inner.find(run_id, tag, submitted_at)
        self.busy_sec += anyio.current_time() - began
        self.during()
        return found

    async def stuck(self) -> list[StuckJob]:
        self.questions += 1
        return await self._inner.stuck()

    async def discard(self, seq: int) -> None:
        await self._inner.discard(seq)


class Scene:
    """The server, one process that plays gateway and worker, and any number of reconcilers."""

    def __init__(self, *, consumer: ConsumerSettings | None = None, faults: Faults | None = None) -> None:
        self.server = MemoryJetStream(consumer=consumer, faults=faults)
        self.faults = self.server.faults
        self.somebody = self.server.process("somebody-else")
        self.gateways: list[MemoryProcess] = []
        self.inspectors: list[Watched] = []

    @asynccontextmanager
    async def reconcilers(self, count: int = 1, limits: Limits | None = None) -> AsyncIterator[Supervisor]:
        """Run so many, each in its own process; afterwards the laws are checked, and that none crashed."""
        specs = []
        for number in range(count):
            process = self.server.process(f"gateway-{number}")
            inspector = Watched(process.inspector)
            self.gateways.append(process)
            self.inspectors.append(inspector)
            specs.append(ActorSpec(process.name, _maker(process, inspector, limits)))
        events: list[Event] = []
        tree = Supervisor(SupervisorSpec("root", tuple(specs)))
        tree.feed.listen(events.append)
        async with tree:
            yield tree
        assert not [event for event in events if isinstance(event, Exited) and event.crash is not None]
        assert not broken_laws(self.server.log)

    def store(self, run_id: str, status: RunStatus = RunStatus.PENDING, **fields: Any) -> RunSnapshot:
        """Write a snapshot, as whoever would."""
        values = {"tag": "default", "submitted_at": virtual_clock(), "updated_at": virtual_clock(), **fields}
        return self.write(RunSnapshot(run_id=run_id, flow_name="flow", status=status, **values))

    def write(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Write this snapshot, whatever is there."""
        self.server.write_run(snapshot.run_id, snapshot_to(snapshot, 262144)[0])
        return snapshot

    def queue(self, run_id: str) -> int:
        """Put the job of a run on the queue; returns its sequence."""
        job = Job(run_id=run_id, flow_name="flow", tag="default", submitted_at=virtual_clock())
        return self.server.send("default", job_to(job))

    async def take(self, times: int = 1) -> Delivery:
        """Take the next job, so many times, without a word to the queue."""
        async with self.somebody.work_queue.pulling("default") as puller:
            for _ in range(times):
                found = await puller.wait()
        return found

    async def use_up(self, run_id: str, status: RunStatus = RunStatus.RUNNING) -> int:
        """A run whose job has been delivered as often as it may."""
        seq = self.queue(run_id)
        found = await self.take(TWICE.max_deliver)
        assert found.attempt.seq == seq
        self.store(run_id, status, attempt=found.attempt, worker_id="w-1")
        return seq

    def get(self, run_id: str) -> RunSnapshot:
        """What is stored."""
        stored = self.server.snapshot(run_id)
        assert stored is not None
        return stored.snapshot

    def letters(self) -> list[tuple[Reason, str | None]]:
        """What the dead letters are about."""
        return [(letter.reason, letter.run_id) for letter in self.server.log.letters()]

    def touched(self) -> list[SnapshotStored]:
        """What reconcilers have written."""
        return [fact for fact in self.server.log.of(SnapshotStored) if fact.by.startswith("gateway") and fact.revision]


def _maker(process: MemoryProcess, inspector: QueueInspector, limits: Limits | None) -> Callable[[], Reconciler]:
    return lambda: Reconciler(
        process.run_store, inspector, process.dead_letters, process.link, virtual_clock, limits or Limits()
    )


# -- runs without a job -----------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_whose_job_never_came_fails_after_a_minute() -> None:
    """With a reason and a letter, and not before."""
    scene = Scene()
    scene.store("r-1")
    async with scene.reconcilers():
        await anyio.sleep(59)
        assert scene.get("r-1").status is RunStatus.PENDING
        await anyio.sleep(20)
        found = scene.get("r-1")
        assert found.status is RunStatus.FAILED
        assert found.error is not None
        assert found.error.startswith("lost_job: ")
        assert scene.letters() == [(Reason.LOST_JOB, "r-1")]
        await anyio.sleep(HOURS_SEC)
        assert len(scene.touched()) == len(scene.letters()) == 1


@in_virtual_time
async def test_a_run_that_comes_later_is_looked_after_too() -> None:
    """The feed tells; nobody asks for all runs again."""
    scene = Scene()
    async with scene.reconcilers():
        await anyio.sleep(1000)
        scene.store("r-1")
        await anyio.sleep(80)
        assert scene.get("r-1").status is RunStatus.FAILED


@in_virtual_time
async def test_a_peers_run_is_treated_alike() -> None:
    """Its snapshot has no submitted_at: it was submitted when it was written, also if it was cancelled since."""
    scene = Scene()
    async with scene.reconcilers():
        for run_id in ("lost", "waits", "lost-cancelled", "waits-cancelled"):
            written = scene.store(run_id, submitted_at=None, heartbeat_at=virtual_clock())
            if run_id.startswith("waits"):
                scene.queue(run_id)
            if run_id.endswith("cancelled"):
                await anyio.sleep(40)
                scene.write(cancelling(written, virtual_clock(), None))
        await anyio.sleep(HOURS_SEC)
        statuses = [scene.get(run_id).status for run_id in ("lost", "waits", "lost-cancelled", "waits-cancelled")]
        assert statuses == [RunStatus.FAILED, RunStatus.PENDING, RunStatus.CANCELLED, RunStatus.CANCELLING]


@pytest.mark.parametrize("ahead_sec", [-290.0, -30.0, 30.0, 290.0])
@in_virtual_time
async def test_clocks_that_differ_by_minutes_cost_no_run(ahead_sec: float) -> None:
    """The submitter's clock may be wrong in both directions; the job is found all the same."""
    scene = Scene()
    scene.store("waits", submitted_at=virtual_clock() + ahead_sec, updated_at=virtual_clock() + ahead_sec)
    scene.queue("waits")
    scene.store("lost", submitted_at=virtual_clock() + ahead_sec, updated_at=virtual_clock() + ahead_sec)
    async with scene.reconcilers():
        await anyio.sleep(80)
        assert scene.get("lost").status is RunStatus.FAILED
        await anyio.sleep(HOURS_SEC)
        assert scene.get("waits").status is RunStatus.PENDING


@in_virtual_time
async def test_a_long_queue_of_waiting_runs_is_left_alone_and_costs_little() -> None:
    """Many that wait for hours: none is touched, and the searches are bounded and get fewer."""
    scene = Scene()
    for number in range(70):
        scene.store(f"r-{number}")
        scene.queue(f"r-{number}")
    async with scene.reconcilers():
        await anyio.sleep(HOURS_SEC)
    assert scene.touched() == []
    assert scene.letters() == []
    searches = scene.inspectors[0].searches
    for minute in range(0, int(HOURS_SEC), 60):
        assert sum(minute <= at < minute + 60 for at in searches) <= 60
    assert len(searches) < 70 * (HOURS_SEC / 600 + 5)
    assert scene.inspectors[0].questions <= HOURS_SEC / 60 + 1


@in_virtual_time
async def test_slow_searches_leave_time_for_the_feed() -> None:
    """In a long queue a search takes seconds: half of the time nobody searches, and all are found in the end."""
    scene = Scene()
    for number in range(20):
        scene.store(f"r-{number}")
    scene.faults.rate("queue.inspect", Slow(4.9), 1.0)
    async with scene.reconcilers():
        await anyio.sleep(3600)
        inspector = scene.inspectors[0]
        assert len(scene.touched()) == len(scene.letters()) == 20
        assert inspector.busy_sec <= (max(inspector.searches) - 60) * 0.6


@in_virtual_time
async def test_lost_runs_among_waiting_ones_are_found() -> None:
    """The oldest first, a few in each round."""
    scene = Scene()
    for number in range(100):
        scene.store(f"r-{number}")
        if number % 10:
            scene.queue(f"r-{number}")
    async with scene.reconcilers():
        await anyio.sleep(60 + 15 * 8)
        lost = {f"r-{number}" for number in range(0, 100, 10)}
        assert {fact.run_id for fact in scene.touched()} == lost
        assert {run_id for _, run_id in scene.letters()} == lost


@in_virtual_time
async def test_an_idle_reconciler_asks_nothing() -> None:
    """One question for leftovers at its start, and then it only listens."""
    scene = Scene()
    scene.store("over", RunStatus.COMPLETED)
    async with scene.reconcilers():
        await anyio.sleep(HOURS_SEC)
        assert scene.inspectors[0].questions == 1
        assert scene.inspectors[0].searches == []


# -- runs without a delivery ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "end"), [(RunStatus.RUNNING, RunStatus.FAILED), (RunStatus.CANCELLING, RunStatus.CANCELLED)]
)
@in_virtual_time
async def test_a_silent_run_whose_job_is_gone_ends(status: RunStatus, end: RunStatus) -> None:
    """FAILED, or CANCELLED if somebody had asked for that, with a reason and a letter."""
    scene = Scene()
    scene.store("r-1", status, attempt=Attempt(7, 1), worker_id="w-1", heartbeat_at=virtual_clock())
    async with scene.reconcilers():
        await anyio.sleep(29)
        assert scene.get("r-1").status is status
        await anyio.sleep(20)
        found = scene.get("r-1")
        assert found.status is end
        assert found.error is not None
        assert found.error.startswith("lost_delivery: worker w-1 ")
        assert scene.letters() == [(Reason.LOST_JOB, "r-1")]


@in_virtual_time
async def test_a_run_that_shows_life_is_left_alone_whatever_the_queue_says() -> None:
    """Its worker has it; somebody emptied the queue. When it falls silent, it ends."""
    scene = Scene()
    snapshot = scene.store("r-1", RunStatus.RUNNING, attempt=Attempt(7, 1), worker_id="w-1")
    async with scene.reconcilers():
        for _ in range(100):
            await anyio.sleep(20)
            snapshot = scene.write(beaten(snapshot, virtual_clock() - 1000))  # its clock is wrong, too
        assert scene.touched() == []
        await anyio.sleep(60)
        assert scene.get("r-1").status is RunStatus.FAILED


@in_virtual_time
async def test_a_silent_run_whose_job_is_still_there_waits_for_a_worker() -> None:
    """Delivered and never settled, or given back, with no worker around: for hours."""
    scene = Scene()
    scene.queue("r-1")
    found = await scene.take()
    scene.store("r-1", RunStatus.RUNNING, attempt=found.attempt, worker_id="w-1")
    scene.store("r-2", RunStatus.RUNNING, attempt=Attempt(99, 1), worker_id="w-1")  # put on the queue a second time
    scene.queue("r-2")
    scene.write(evolve(scene.get("r-1"), run_id="r-3", submitted_at=None, start_time=virtual_clock()))
    async with scene.reconcilers():
        await anyio.sleep(HOURS_SEC)
        assert scene.touched() == []


@in_virtual_time
async def test_a_run_is_left_alone_if_its_job_could_not_be_found_even_if_it_were_there() -> None:
    """A peer's worker has it, and we do not know when it was submitted; if we have seen that, we do."""
    scene = Scene()
    running = {"submitted_at": None, "start_time": virtual_clock(), "heartbeat_at": virtual_clock()}
    scene.store("unknown", RunStatus.RUNNING, **running)
    async with scene.reconcilers():
        scene.store("known", submitted_at=None, heartbeat_at=virtual_clock())
        await anyio.sleep(10)
        scene.store("known", RunStatus.RUNNING, **running)
        await anyio.sleep(HOURS_SEC)
        assert scene.get("unknown").status is RunStatus.RUNNING
        assert scene.get("known").status is RunStatus.FAILED


@in_virtual_time
async def test_a_worker_that_ends_the_run_during_the_look_has_the_last_word() -> None:
    """The end is written before the ack: whoever sees no job must read the snapshot after that."""
    scene = Scene()
    seq = scene.queue("r-1")
    found = await scene.take()
    running = scene.store("r-1", RunStatus.RUNNING, attempt=found.attempt, worker_id="w-1")

    def finish() -> None:
        scene.write(ended(running, Completed(), virtual_clock()))

    async with scene.reconcilers():
        await anyio.sleep(25)
        scene.server.work.discard(seq, "somebody")
        scene.inspectors[0].during = finish
        await anyio.sleep(LATE_SEC)
        assert scene.get("r-1").status is RunStatus.COMPLETED
        assert scene.touched() == []
        assert scene.letters() == []


@in_virtual_time
async def test_a_run_that_shows_life_during_the_look_is_left_alone() -> None:
    """It was silent for a while, and is not any more."""
    scene = Scene()
    running = scene.store("r-1", RunStatus.RUNNING, attempt=Attempt(7, 1), worker_id="w-1")
    async with scene.reconcilers():
        scene.inspectors[0].during = lambda: (scene.write(beaten(running, virtual_clock())), None)[1]
        await anyio.sleep(1000)
        assert scene.touched() == []
        assert scene.inspectors[0].searches


@in_virtual_time
async def test_somebody_who_writes_in_between_is_not_overwritten() -> None:
    """A conflict: the run has shown life, and is looked at again when it is silent."""
    scene = Scene()
    scene.store("r-1")
    scene.faults.conflict_next("r-1")
    async with scene.reconcilers():
        await anyio.sleep(100)
        assert scene.get("r-1").status is RunStatus.PENDING
        assert scene.letters() == []
        await anyio.sleep(60)
        assert scene.get("r-1").status is RunStatus.FAILED
        assert scene.letters() == [(Reason.LOST_JOB, "r-1")]


@in_virtual_time
async def test_a_snapshot_that_nobody_can_read_is_left_alone() -> None:
    """Somebody else wrote it; the others are looked after."""
    scene = Scene()
    scene.store("r-1")
    scene.store("r-2")
    async with scene.reconcilers():
        await anyio.sleep(10)
        scene.server.write_run("r-1", b"garbage")
        await anyio.sleep(HOURS_SEC)
        assert [fact.run_id for fact in scene.touched()] == ["r-2"]
        assert max(scene.inspectors[0].searches) < LATE_SEC  # it was looked at once


@in_virtual_time
async def test_a_run_that_cannot_be_looked_for_does_not_stop_the_others() -> None:
    """The server refuses the question about one of them, every time."""
    scene = Scene()
    scene.store("bad")
    scene.store("lost")
    async with scene.reconcilers():
        scene.inspectors[0].refused.add("bad")
        await anyio.sleep(1000)
        assert scene.get("bad").status is RunStatus.PENDING
        assert scene.get("lost").status is RunStatus.FAILED
        scene.inspectors[0].refused.clear()
        await anyio.sleep(100)
        assert scene.get("bad").status is RunStatus.FAILED


# -- jobs that nobody will get ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (RunStatus.PENDING, RunStatus.FAILED),
        (RunStatus.RUNNING, RunStatus.FAILED),
        (RunStatus.CANCELLING, RunStatus.CANCELLED),
    ],
)
@in_virtual_time
async def test_a_run_whose_deliveries_are_used_up_ends(status: RunStatus, end: RunStatus) -> None:
    """First the snapshot, then the letter, then the leftover goes: a crash in between loses nothing."""
    scene = Scene(consumer=TWICE)
    seq = await scene.use_up("r-1", status)
    async with scene.reconcilers():
        await anyio.sleep(LATE_SEC)
        found = scene.get("r-1")
        assert found.status is end
        assert found.error is not None
        assert found.error.startswith("max_deliver_exceeded: ")
    facts = [fact for fact in scene.server.log.facts if getattr(fact, "by", "") == "gateway-0"]
    assert [type(fact) for fact in facts] == [SnapshotStored, LetterStored, JobDiscarded]
    letter = scene.server.log.letters()[0]
    assert (letter.reason, letter.tag, letter.subject) == (
        Reason.MAX_DELIVER_EXCEEDED,
        "default",
        "pyoco.work.default",
    )
    assert seq not in scene.server.work.messages


@in_virtual_time
async def test_a_worker_that_goes_on_without_its_delivery_may_finish() -> None:
    """Its last delivery has expired, and it still shows life: its end counts, and the leftover goes after it."""
    scene = Scene(consumer=TWICE)
    seq = await scene.use_up("r-1")
    snapshot = scene.get("r-1")
    async with scene.reconcilers():
        for _ in range(100):
            await anyio.sleep(5)
            snapshot = scene.write(beaten(snapshot, virtual_clock()))
        assert scene.touched() == []
        scene.write(ended(snapshot, Completed(), virtual_clock()))
        await anyio.sleep(LATE_SEC)
    assert scene.touched() == []
    assert scene.letters() == []
    assert seq not in scene.server.work.messages


@in_virtual_time
async def test_leftovers_of_runs_that_are_over_or_gone_are_cleared_at_the_start() -> None:
    """Over: an ack was lost. Gone, or no job at all: the letter is the only trace."""
    scene = Scene(consumer=TWICE)
    await scene.use_up("over", RunStatus.COMPLETED)
    scene.queue("gone")
    await scene.take(2)
    scene.server.send("default", b"garbage")
    await scene.take(2)
    await anyio.sleep(31)
    async with scene.reconcilers():
        await anyio.sleep(10)
        assert scene.letters() == [(Reason.ORPHANED_JOB, "gone"), (Reason.INVALID_JOB, None)]
    assert scene.server.work.messages == {}
    assert scene.touched() == []


@in_virtual_time
async def test_a_leftover_does_not_end_a_run_that_has_another_job() -> None:
    """It was put on the queue a second time."""
    scene = Scene(consumer=TWICE)
    seq = await scene.use_up("r-1")
    scene.queue("r-1")
    found = await scene.take()
    assert found.attempt.seq != seq
    scene.write(evolve(scene.get("r-1"), attempt=found.attempt))
    async with scene.reconcilers():
        for _ in range(10):
            await anyio.sleep(20)
            await found.in_progress()
    assert scene.touched() == []
    assert scene.letters() == []
    assert list(scene.server.work.messages) == [found.attempt.seq]


@in_virtual_time
async def test_jobs_that_are_delivered_again_are_no_leftovers() -> None:
    """A job between two deliveries, and one in somebody's hands."""
    scene = Scene()
    for run_id in ("r-1", "r-2"):
        scene.queue(run_id)
        found = await scene.take()
        scene.store(run_id, RunStatus.RUNNING, attempt=found.attempt)
    async with scene.reconcilers():
        for _ in range(100):
            await anyio.sleep(10)
            await found.in_progress()
        assert scene.touched() == []
        assert len(scene.server.work.messages) == 2


# -- several at once --------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_two_reconcilers_write_one_end_and_one_letter() -> None:
    """They look at the same moment; compare-and-set decides, and the second does nothing."""
    scene = Scene(consumer=TWICE)
    for number in range(5):
        await scene.use_up(f"stuck-{number}")
    for number in range(20):
        scene.store(f"pending-{number}")
        scene.store(f"running-{number}", RunStatus.RUNNING, attempt=Attempt(1000 + number, 1))
    async with scene.reconcilers(2):
        await anyio.sleep(1000)
    touched = sorted(fact.run_id for fact in scene.touched())
    assert len(touched) == len(set(touched)) == 45
    assert sorted(run_id or "" for _, run_id in scene.letters()) == touched
    assert scene.server.work.messages == {}


@in_virtual_time
async def test_the_next_one_writes_the_letter_of_one_that_died() -> None:
    """Between the end of the run and its letter; it waits a while first, because the other may live."""
    scene = Scene(consumer=TWICE)
    await scene.use_up("r-1")
    scene.faults.next("dead_letters.publish", Slow(4.0))
    async with scene.reconcilers(2):
        while not scene.touched():  # noqa: ASYNC110 (virtual time)
            await anyio.sleep(0.5)
        died = scene.touched()[0].by
        next(process for process in scene.gateways if process.name == died).crash()
        await anyio.sleep(50)
        assert len(scene.server.log.letters()) <= 1  # the one that died may have been quick enough
        await anyio.sleep(400)
    assert 1 <= len(scene.letters()) <= 2
    assert next(reversed(list(scene.server.log.of(LetterStored)))).by != died
    assert scene.server.work.messages == {}


# -- trouble ----------------------------------------------------------------------------------------------------------

CALLS: list[Operation] = [
    "run_store.get",
    "run_store.update",
    "run_store.watch",
    "run_store.watch_next",
    "queue.inspect",
    "dead_letters.publish",
]


@pytest.mark.parametrize("fault", [Lost.BEFORE, Lost.AFTER, Slow(4.0), Slow(20.0)])
@pytest.mark.parametrize("operation", CALLS)
@in_virtual_time
async def test_each_call_may_fail_once(operation: Operation, fault: Fault) -> None:
    """Every run ends once, and has its letter; only a letter whose answer was lost may be there twice."""
    scene = Scene(consumer=TWICE)
    await scene.use_up("stuck")
    await scene.use_up("stuck-too")
    scene.store("pending")
    scene.store("running", RunStatus.RUNNING, attempt=Attempt(1000, 1))
    async with scene.reconcilers():
        await anyio.sleep(10)
        scene.faults.next(operation, fault, None, fault, None, fault)
        await anyio.sleep(1000)
    lost = ["pending", "running", "stuck", "stuck-too"]
    assert sorted(fact.run_id for fact in scene.touched()) == lost
    assert {run_id for _, run_id in scene.letters()} == set(lost)
    assert len(scene.letters()) == 4 or (operation == "dead_letters.publish" and len(scene.letters()) <= 7)
    assert scene.server.work.messages == {}


@in_virtual_time
async def test_after_an_outage_it_goes_on_with_the_picture_of_then() -> None:
    """Runs that were removed or ended meanwhile are not touched; those that were quiet all the time are due."""
    scene = Scene()
    for run_id in ("lost", "removed", "ended", "alive"):
        scene.store(run_id)
    async with scene.reconcilers():
        await anyio.sleep(50)
        scene.gateways[0].disconnect()
        await anyio.sleep(1000)
        assert scene.touched() == []
        stored = scene.server.snapshot("removed")
        assert stored is not None
        scene.server.runs.remove("removed", stored.revision, "somebody")
        scene.store("ended", RunStatus.COMPLETED)
        scene.store("alive")
        scene.gateways[0].reconnect()
        await anyio.sleep(20)
        assert [fact.run_id for fact in scene.touched()] == ["lost"]
        await anyio.sleep(100)
        assert [fact.run_id for fact in scene.touched()] == ["lost", "alive"]
        assert set(scene.inspectors[0].searched) == {"lost", "alive"}
        assert len(scene.letters()) == 2


@in_virtual_time
async def test_a_reconciler_that_is_stopped_stores_the_letter_that_it_owes() -> None:
    """Also if it does not know whether its last write was stored."""
    for operation in ("run_store.update", "dead_letters.publish"):
        scene = Scene()
        scene.store("r-1")
        async with scene.reconcilers() as tree:
            scene.faults.next(operation, Slow(1.5))
            while not scene.inspectors[0].searches:  # noqa: ASYNC110 (virtual time)
                await anyio.sleep(0.5)
            await anyio.sleep(0.6)
            await tree.restart("root/gateway-0")
            await anyio.sleep(200)
        assert scene.get("r-1").status is RunStatus.FAILED
        assert len(scene.touched()) == 1
        assert set(scene.letters()) == {(Reason.LOST_JOB, "r-1")}


@in_virtual_time
async def test_a_letter_that_is_refused_again_and_again_does_not_stop_the_others() -> None:
    """The snapshot is the truth; the letter is best effort."""
    scene = Scene()
    scene.store("r-1")
    scene.store("r-2")
    scene.faults.next("dead_letters.publish", *[Lost.BEFORE] * 3)
    async with scene.reconcilers():
        await anyio.sleep(LATE_SEC)
        assert [fact.run_id for fact in scene.touched()] == ["r-1", "r-2"]
        assert scene.letters() == [(Reason.LOST_JOB, "r-2")]


@pytest.mark.parametrize("seed", range(25))
def test_in_constant_trouble_the_laws_hold(seed: int) -> None:
    """Two reconcilers, calls lost and late all the time, connections cut: what is lost ends, all else is as it was."""

    async def trouble() -> None:
        dice = random.Random(seed)
        faults = Faults(dice, jitter_sec=0.2)
        scene = Scene(consumer=TWICE, faults=faults)
        stuck = [await scene.use_up(f"stuck-{number}") for number in range(4)]
        for number in range(8):
            scene.store(f"lost-{number}")
            scene.store(f"gone-{number}", RunStatus.RUNNING, attempt=Attempt(1000 + number, 1))
            scene.store(f"waits-{number}")
            scene.queue(f"waits-{number}")
        for fault in (Lost.BEFORE, Lost.AFTER, Slow(6.0)):
            faults.rate(None, fault, 0.05)
        async with scene.reconcilers(2) as tree:
            for _ in range(30):
                await anyio.sleep(dice.random() * 40)
                gateway = dice.choice(scene.gateways)
                if dice.random() < 0.5:
                    gateway.disconnect()
                    await anyio.sleep(dice.random() * 10)
                    gateway.reconnect()
                else:
                    await tree.restart(f"root/{gateway.name}")
            faults.calm()
            await anyio.sleep(2000)
        touched = sorted(fact.run_id for fact in scene.touched())
        assert len(touched) == len(set(touched)) == 20
        assert not [run_id for run_id in touched if run_id.startswith("waits")]
        assert len(scene.server.work.messages) == 8
        assert not set(stuck) & set(scene.server.work.messages)

    run_virtual(trouble, seed=seed)


def test_the_reconciler_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""

    def make() -> Reconciler:
        scene = Scene()
        for number in range(5):
            scene.store(f"lost-{number}")
            scene.store(f"gone-{number}", RunStatus.RUNNING, attempt=Attempt(1000 + number, 1))
        scene.faults.rate(None, Slow(0.3), 0.3)
        process = scene.server.process("gateway")
        limits = Limits(pending_sec=1.0, silent_sec=0.5, round_sec=0.2, looks=3, stuck_gap_sec=0.5)
        return _maker(process, process.inspector, limits)()

    stress_start_cancel(make)
