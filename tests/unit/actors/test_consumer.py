"""The consumers of a worker on the memory queue, in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from pyoco_runtime.actors.consumer import Consumer
from pyoco_runtime.core import Actor, ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.errors import NotRunning
from pyoco_runtime.model.settlement import GIVE_BACK, Ack
from pyoco_runtime.ports import Delivery
from pyoco_runtime.slots import Slots
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.memory_log import JobDelivered, JobSettled
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import in_virtual_time, job, settle_down


class Bench:
    """A server, the places of a worker, and runs that only take their time."""

    def __init__(self, places: int = 2, *, run_sec: float = 1.0, consumer: ConsumerSettings | None = None) -> None:
        self.server = MemoryJetStream(consumer=consumer)
        self.process = self.server.process("w-1")
        self.slots = Slots(places)
        self.gate = anyio.Event()
        self.gate.set()
        self.started: list[tuple[float, str]] = []
        self.most_at_once = 0
        self.is_down = False
        self._run_sec = run_sec
        self._sent = 0
        self._arrived = anyio.Event()
        self._open: list[tuple[float, Delivery]] = []

    def consumer(self, tag: str) -> Consumer:
        return Consumer(tag, self.process.work_queue, self.process.link, self.slots, self._launch, self.gate.wait)

    def _launch(self, delivery: Delivery) -> None:
        if self.is_down:
            raise NotRunning("the runs are being restarted")
        self.started.append((anyio.current_time(), delivery.tag))
        self._open.append((anyio.current_time() + self._run_sec, delivery))
        self.most_at_once = max(self.most_at_once, len(self._open))
        self._arrived.set()

    async def work(self) -> None:
        """Bring every run to its end after its time."""
        while True:
            self._arrived = anyio.Event()
            with anyio.CancelScope(deadline=min((at for at, _ in self._open), default=float("inf"))):
                await self._arrived.wait()
            for at, delivery in tuple(self._open):
                if at <= anyio.current_time() + 1e-9:
                    await delivery.settle(Ack())
                    self._open.remove((at, delivery))
                    self.slots.vacate()

    async def send(self, tag: str, count: int = 1) -> None:
        """Put jobs on the queue."""
        for _ in range(count):
            self._sent += 1
            await self.process.work_queue.publish(job(f"r-{self._sent}", tag=tag))

    @asynccontextmanager
    async def open(self, *tags: str) -> AsyncIterator[Supervisor]:
        """Run the consumers; checks afterwards that they have left nothing reserved."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.work)
            async with Supervisor(
                SupervisorSpec("root", tuple(ActorSpec(tag, self._maker(tag)) for tag in tags))
            ) as tree:
                yield tree
            await anyio.sleep(2 * self._run_sec)
            assert not self._open
            tasks.cancel_scope.cancel()
        assert (self.slots.free, self.slots.running) == (self.slots.total, 0), "a place was lost"

    def _maker(self, tag: str) -> Callable[[], Actor]:
        return lambda: self.consumer(tag)

    def delivered(self) -> list[JobDelivered]:
        return list(self.server.log.of(JobDelivered))


@in_virtual_time
async def test_it_takes_only_as_many_jobs_as_there_are_places() -> None:
    """Ten jobs, two places: what is delivered is executed, and nothing lies in our hands."""
    bench = Bench(2)
    async with bench.open("a"):
        await bench.send("a", 10)
        await anyio.sleep(0.5)
        assert len(bench.delivered()) == 2
        await anyio.sleep(20)
    assert len(bench.started) == len(bench.delivered()) == 10
    assert bench.most_at_once == 2
    assert anyio.current_time() < 30


@in_virtual_time
async def test_a_job_that_comes_to_an_idle_worker_starts_at_once() -> None:
    """It stands in line: no polling, no delay."""
    bench = Bench(2)
    async with bench.open("a", "b"):
        await anyio.sleep(1000)
        sent = anyio.current_time()
        await bench.send("b")
        await settle_down()
        ((began, tag),) = bench.started
        assert tag == "b"
        assert began == pytest.approx(sent)


@in_virtual_time
async def test_two_busy_tags_share_the_places() -> None:
    """Four places, 100 jobs each: after any while neither is far behind."""
    bench = Bench(4)
    async with bench.open("a", "b"):
        await bench.send("a", 100)
        await bench.send("b", 100)
        await anyio.sleep(20)
        count = Counter(tag for _, tag in bench.started)
        assert sum(count.values()) >= 72
        assert min(count["a"], count["b"]) >= 30
        await anyio.sleep(40)
    assert len(bench.started) == 200


@in_virtual_time
async def test_five_busy_tags_with_two_places_all_get_their_turn() -> None:
    """None starves, and none waits much longer than the others."""
    bench = Bench(2)
    async with bench.open(*"abcde"):
        for tag in "abcde":
            await bench.send(tag, 20)
        await anyio.sleep(25)
        count = Counter(tag for _, tag in bench.started)
        assert min(count[tag] for tag in "abcde") >= 7, count
        await anyio.sleep(40)
    assert len(bench.started) == 100


@in_virtual_time
async def test_a_rare_tag_is_not_starved_by_a_busy_one() -> None:
    """Its job starts in its turn, not after the whole line of the other."""
    bench = Bench(2)
    async with bench.open("busy", "rare"):
        await bench.send("busy", 100)
        await anyio.sleep(5.5)
        await bench.send("rare")
        sent = anyio.current_time()
        await anyio.sleep(60)
    (began,) = [at for at, tag in bench.started if tag == "rare"]
    assert began - sent <= 2.0 + 1e-3


@in_virtual_time
async def test_idle_tags_do_not_slow_a_busy_one_down() -> None:
    """All places are used for what there is."""
    bench = Bench(2)
    async with bench.open(*"abcde"):
        await bench.send("c", 40)
        await anyio.sleep(21)
        assert len(bench.started) == 40


@in_virtual_time
async def test_surplus_of_two_tags_that_stand_in_line_is_held_shortly_or_given_back() -> None:
    """One place, and a job for each of five tags at the same moment: none waits for its ack wait."""
    bench = Bench(1, consumer=ConsumerSettings(ack_wait_sec=3600))
    async with bench.open(*"abcde"):
        await anyio.sleep(5)
        for tag in "abcde":
            await bench.send(tag)
        await anyio.sleep(10)
        assert len(bench.started) == 5
    assert all(fact.settlement in (Ack(), GIVE_BACK) for fact in bench.server.log.of(JobSettled))


@in_virtual_time
async def test_a_job_that_comes_as_the_last_place_is_taken_waits_for_the_next_one() -> None:
    """A place comes free within a quarter of a second: it is used, whether the job was held or given back."""
    bench = Bench(1, run_sec=0.1)
    async with bench.open("a", "b"):
        await anyio.sleep(5)
        await bench.send("a")
        await bench.send("b")
        await anyio.sleep(0.3)
        assert len(bench.started) == 2


@in_virtual_time
async def test_asked_to_stop_it_stops_pulling_at_once() -> None:
    """What comes afterwards stays on the queue, undelivered; what came is given back or running."""
    bench = Bench(2)
    async with bench.open("a", "b") as tree:
        await anyio.sleep(5)
        tree.stop()
        await bench.send("a", 5)
        await settle_down()
    held = {fact.seq for fact in bench.delivered()} - {fact.seq for fact in bench.server.log.of(JobSettled)}
    assert held == set()


@pytest.mark.parametrize("now", [True, False])
@in_virtual_time
async def test_stopped_in_the_middle_of_a_call_nothing_is_stuck_until_the_ack_wait(now: bool) -> None:
    """Answers are under way when it is stopped: what they carry goes back at once."""
    bench = Bench(2, consumer=ConsumerSettings(ack_wait_sec=3600))
    async with bench.open("a", "b") as tree:
        bench.server.faults.rate("take", Slow(2.0), 1.0)
        bench.server.faults.rate("wait", Slow(2.0), 1.0)
        await bench.send("a", 5)
        await bench.send("b", 5)
        await anyio.sleep(2.5)
        tree.stop(now=now)
    held = {fact.seq for fact in bench.delivered()} - {fact.seq for fact in bench.server.log.of(JobSettled)}
    assert held == set()


@in_virtual_time
async def test_it_begins_only_when_it_may() -> None:
    """The wheels are not installed yet: nothing is pulled."""
    bench = Bench(2)
    bench.gate = anyio.Event()
    async with bench.open("a"):
        await bench.send("a")
        await anyio.sleep(100)
        assert bench.delivered() == []
        bench.gate.set()
        await settle_down()
        assert len(bench.started) == 1


@in_virtual_time
async def test_after_an_outage_it_pulls_again() -> None:
    """The link, and then single calls, were lost."""
    bench = Bench(2, consumer=ConsumerSettings(ack_wait_sec=5.0))
    async with bench.open("a"):
        await anyio.sleep(1)
        bench.process.disconnect()
        await anyio.sleep(100)
        bench.process.reconnect()
        bench.server.faults.next("queue.pull", Lost.BEFORE)
        bench.server.faults.next("take", Lost.BEFORE, Lost.AFTER)
        bench.server.faults.next("wait", Lost.AFTER)
        await bench.send("a", 10)
        await anyio.sleep(60)
    assert len({fact.seq for fact in bench.server.log.of(JobSettled) if fact.settlement == Ack()}) == 10


@in_virtual_time
async def test_while_no_run_can_be_started_jobs_are_not_worn_out() -> None:
    """The supervisor of the runs is being restarted: jobs are given back a few times, not as often as they may be."""
    bench = Bench(2, consumer=ConsumerSettings(max_deliver=20))
    async with bench.open("a"):
        await anyio.sleep(1)
        bench.is_down = True
        await bench.send("a", 3)
        await anyio.sleep(25)
        bench.is_down = False
        worn = Counter(fact.seq for fact in bench.delivered())
        assert max(worn.values()) < 10, worn
        await anyio.sleep(10)
    assert len(bench.started) == 3


@in_virtual_time
async def test_a_restart_loses_no_job_and_no_place() -> None:
    """In the middle of a busy time, again and again."""
    bench = Bench(3, consumer=ConsumerSettings(ack_wait_sec=3600))
    async with bench.open("a", "b") as tree:
        await bench.send("a", 30)
        await bench.send("b", 30)
        for n in range(20):
            await anyio.sleep(0.37)
            await tree.restart("root/a" if n % 2 else "root/b")
        await anyio.sleep(30)
    assert len(bench.started) == 60


@pytest.mark.parametrize("jobs", [0, 1, 10])
def test_the_consumer_survives_start_and_cancel_stress(jobs: int) -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, no place is lost, no job is held."""
    benches: list[Bench] = []

    def make() -> Consumer:
        bench = Bench(2)
        bench.is_down = len(benches) % 2 == 0
        bench.server.faults.rate("take", Slow(3.0), 0.5)
        bench.server.faults.rate("wait", Slow(3.0), 0.5)
        for n in range(jobs):
            bench.server.send("a", b'{"run_id": "r-%d"}' % n)
        benches.append(bench)
        return bench.consumer("a")

    stress_start_cancel(make)
    for bench in benches:
        assert bench.slots.free + bench.slots.running == bench.slots.total
        handed = {(fact.seq, fact.delivery) for fact in bench.delivered()}
        settled = {(fact.seq, fact.delivery) for fact in bench.server.log.of(JobSettled)}
        assert len(handed - settled) == len(bench.started)
