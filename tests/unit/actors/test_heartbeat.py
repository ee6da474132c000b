"""The heartbeat in virtual time."""

from __future__ import annotations

import itertools

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.actors.heartbeat import Heartbeat, Identity, OfferNews, WheelNews
from pyoco_runtime.in_flight import InFlight, LastRun
from pyoco_runtime.model.offer import Offer
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import FakeSeat, Shop, alone, in_virtual_time


class Heart:
    """A worker's record on a server, and the heartbeat that writes it."""

    def __init__(self, *, worker_sec: float = 5.0, run_sec: float = 1.0) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("w-1")
        self.in_flight = InFlight()
        self.news = WheelNews(WheelSync())
        self.offers = OfferNews()
        self.writes: list[float] = []
        self.seen: list[WorkerRecord] = []
        self._worker_sec = worker_sec
        self._run_sec = run_sec
        self.server.workers.listen(lambda entry: self._note())

    def _note(self) -> None:
        self.writes.append(anyio.current_time())
        self.seen.append(self.record)

    def heartbeat(self) -> Heartbeat:
        return Heartbeat(
            Identity("w-1", "i-1", ("a", "b"), 4),
            self.in_flight,
            self.process.registry,
            self.news,
            self.process.link,
            virtual_clock,
            worker_sec=self._worker_sec,
            run_sec=self._run_sec,
            offers=self.offers,
        )

    @property
    def record(self) -> WorkerRecord:
        found = self.server.worker("w-1")
        assert found is not None
        return found


@in_virtual_time
async def test_the_record_of_an_idle_worker() -> None:
    """All fields of the contract, at once after the start and every interval."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(20.5)
        record, now = heart.record, virtual_clock() - 0.5
        assert (record.worker_id, record.instance_id, record.tags) == ("w-1", "i-1", ("a", "b"))
        assert (record.state, record.hidden, record.current_run_id) == (WorkerState.IDLE, False, None)
        assert (record.last_run_id, record.last_run_status, record.stopped_at, record.stop_reason) == (None,) * 4
        assert [record.last_seen_at, record.last_heartbeat_at, record.heartbeat_at, record.updated_at] == [
            pytest.approx(now)
        ] * 4
        assert record.extra["concurrency"] == 4
        assert heart.writes == pytest.approx([0.0, 5.0, 10.0, 15.0, 20.0], abs=0.01)


@in_virtual_time
async def test_what_a_worker_can_run_shows_soon_and_outlives_the_actor() -> None:
    """Null until it is known; then within the quiet time, and at once in the actor's next life."""
    heart = Heart(worker_sec=60.0)
    async with alone(heart.heartbeat):
        await anyio.sleep(10)
        assert (heart.record.flows, heart.record.tasks) == (None, None)
        heart.offers.tell(Offer(("hello", "slow"), ()))
        await anyio.sleep(1)
        assert (heart.record.flows, heart.record.tasks) == (("hello", "slow"), ())
    heart.offers.tell(Offer(("other",), None))
    async with alone(heart.heartbeat):
        await anyio.sleep(0.1)
        assert (heart.record.flows, heart.record.tasks) == (("other",), None)


@in_virtual_time
async def test_a_run_shows_soon_and_so_does_its_end() -> None:
    """RUNNING with its id, then IDLE with what the last run was; well before the interval."""
    heart = Heart(worker_sec=60.0)
    async with alone(heart.heartbeat):
        await anyio.sleep(10)
        seat = FakeSeat("r-1")
        heart.in_flight.add(seat)
        await anyio.sleep(1)
        record = heart.record
        assert (record.state, record.current_run_id) == (WorkerState.RUNNING, "r-1")
        assert record.last_run_started_at == seat.since
        heart.in_flight.last = LastRun("r-1", RunStatus.COMPLETED, virtual_clock())
        heart.in_flight.remove(seat)
        await anyio.sleep(1)
        record = heart.record
        assert (record.state, record.current_run_id) == (WorkerState.IDLE, None)
        assert (record.last_run_id, record.last_run_status) == ("r-1", "COMPLETED")
        assert record.last_run_finished_at == pytest.approx(virtual_clock() - 1)


@in_virtual_time
async def test_all_runs_in_hand_are_shown_and_none_that_is_gone() -> None:
    """Our own addition to the record is ours to change: it does not stay as it was first written."""
    heart = Heart()
    async with alone(heart.heartbeat):
        seats = [FakeSeat(f"r-{n}") for n in range(3)]
        for seat in seats:
            heart.in_flight.add(seat)
        await anyio.sleep(6)
        assert heart.record.extra["current_run_ids"] == ["r-0", "r-1", "r-2"]
        for seat in seats[:2]:
            heart.in_flight.remove(seat)
        await anyio.sleep(6)
        assert heart.record.extra["current_run_ids"] == ["r-2"]
        assert heart.record.current_run_id == "r-2"


@in_virtual_time
async def test_hidden_and_the_fields_of_others_are_kept() -> None:
    """People hide workers through the gateway; another program may add a field."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(1)
        heart.server.write_worker(evolve(heart.record, hidden=True, extra={"theirs": 1}))
        await anyio.sleep(30)
        assert (heart.record.hidden, heart.record.extra["theirs"]) == (True, 1)
    assert heart.record.hidden


@in_virtual_time
async def test_good_bye_is_the_last_word() -> None:
    """STOPPED_GRACEFUL with time and reason, and no run in hand."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(7)
    record = heart.record
    assert (record.state, record.current_run_id) == (WorkerState.STOPPED_GRACEFUL, None)
    assert record.stopped_at == pytest.approx(virtual_clock())
    assert record.stop_reason == "graceful_shutdown"


@in_virtual_time
async def test_good_bye_is_said_again_after_a_hiccup() -> None:
    """One lost message does not make a worker look as if it had vanished."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(7)
        heart.server.faults.next("registry.publish", Lost.BEFORE)
    assert heart.record.state is WorkerState.STOPPED_GRACEFUL


@in_virtual_time
async def test_good_bye_without_nats_takes_two_seconds_at_most(caplog: pytest.LogCaptureFixture) -> None:
    """It is told in the log instead."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(7)
        heart.process.disconnect()
        began = anyio.current_time()
    assert anyio.current_time() - began <= 2.0 + 1e-3
    assert "cannot tell the registry" in caplog.text


@in_virtual_time
async def test_thousands_of_short_runs_do_not_flood_the_registry() -> None:
    """Two writes a second at most, however many runs come and go."""
    heart = Heart()
    async with alone(heart.heartbeat):
        for n in range(5000):
            seat = FakeSeat(f"r-{n}")
            heart.in_flight.add(seat)
            await anyio.sleep(0.005)
            heart.in_flight.remove(seat)
            await anyio.sleep(0.005)
        assert len(heart.writes) <= 2 * 50 + 5


@in_virtual_time
async def test_runs_are_asked_to_beat_every_interval() -> None:
    """Not in their first one: they have just written their claim."""
    heart = Heart(run_sec=1.0)
    async with alone(heart.heartbeat):
        await anyio.sleep(3.3)
        seat = FakeSeat("r-1")
        heart.in_flight.add(seat)
        began = anyio.current_time()
        await anyio.sleep(30)
    assert 1.0 - 1e-3 <= seat.beats[0] - began <= 2.0 + 1e-3
    gaps = [later - earlier for earlier, later in itertools.pairwise(seat.beats)]
    assert max(gaps) <= 1.0 + 1e-3
    assert len(seat.beats) <= 31


@in_virtual_time
async def test_an_outage_is_no_crash_and_the_record_comes_back() -> None:
    """Silent while NATS is away, written within an interval after it is back; runs are asked all the while."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(7)
        seat = FakeSeat("r-1")
        heart.in_flight.add(seat)
        heart.process.disconnect()
        await anyio.sleep(60)
        assert len(seat.beats) >= 58
        heart.process.reconnect()
        back = anyio.current_time()
        await anyio.sleep(6)
        assert any(back <= at <= back + 5.0 + 1e-3 for at in heart.writes)
        assert heart.record.state is WorkerState.RUNNING


@in_virtual_time
async def test_the_first_record_comes_with_the_link_not_an_interval_later() -> None:
    """A worker that has just connected is seen at once."""
    heart = Heart(worker_sec=3600.0)
    heart.process.disconnect()
    async with alone(heart.heartbeat):
        await anyio.sleep(7)
        heart.process.reconnect()
        back = anyio.current_time()
        await anyio.sleep(0.04)
        assert [round(at - back, 1) for at in heart.writes] == [0.0]


@in_virtual_time
async def test_a_record_that_could_not_be_written_is_tried_again_soon() -> None:
    """Not one interval later."""
    heart = Heart(worker_sec=3600.0)
    heart.server.faults.next("registry.publish", Lost.BEFORE)
    async with alone(heart.heartbeat):
        await anyio.sleep(10)
        assert len(heart.writes) == 1


@in_virtual_time
async def test_what_the_wheel_syncer_says_is_shown() -> None:
    """With the next record."""
    heart = Heart()
    async with alone(heart.heartbeat):
        await anyio.sleep(1)
        heart.news.tell(WheelSync(enabled=True, last_result="ok", installed_wheels=({"name": "x"},)))
        await anyio.sleep(6)
        assert heart.record.wheel_sync.last_result == "ok"


@in_virtual_time
async def test_a_worker_with_real_runs() -> None:
    """The record follows them from RUNNING to IDLE."""
    shop = Shop()
    who, news = Identity("w-1", "i-1", ("default",), 4), WheelNews(WheelSync())

    def heartbeat() -> Heartbeat:
        registry, link = shop.process.registry, shop.process.link
        return Heartbeat(who, shop.in_flight, registry, news, link, virtual_clock, worker_sec=5.0, run_sec=1.0)

    async with shop.open(heartbeat=heartbeat):
        started = await shop.begin()
        await anyio.sleep(0.7)
        record = shop.server.worker("w-1")
        assert record is not None
        assert (record.state, record.current_run_id) == (WorkerState.RUNNING, "r-1")
        await started.end()
        await anyio.sleep(1)
        record = shop.server.worker("w-1")
        assert record is not None
        assert (record.state, record.last_run_id, record.last_run_status) == (WorkerState.IDLE, "r-1", "COMPLETED")


def test_the_heartbeat_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    hearts: list[Heart] = []

    def make() -> Heartbeat:
        hearts.append(Heart())
        hearts[-1].in_flight.add(FakeSeat())
        return hearts[-1].heartbeat()

    stress_start_cancel(make)
    assert not any(heart.in_flight._listeners for heart in hearts)
