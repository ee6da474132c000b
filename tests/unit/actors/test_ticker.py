"""The ticker in virtual time."""

from __future__ import annotations

import itertools

import anyio
import pytest

from pyoco_runtime.actors.ticker import Ticker
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.in_flight import InFlight
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.settlement import HICCUP, Ack
from pyoco_runtime.testing.fake_runner import EndTask, Sleep, StartTask
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_log import JobDelivered
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import FakeDelivery, FakeSeat, Shop, alone, in_virtual_time


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize(("ack_wait_sec", "period_sec"), [(2.0, 2.0 / 3), (30.0, 10.0), (300.0, 10.0)])
@in_virtual_time
async def test_it_ticks_every_interval_and_thrice_an_ack_wait(ack_wait_sec: float, period_sec: float) -> None:
    """Clamped under the ack wait of the consumer, so that two signs of life may be lost."""
    in_flight, delivery = InFlight(), FakeDelivery(ack_wait_sec=ack_wait_sec)
    async with alone(lambda: Ticker(in_flight, 10.0)):
        await anyio.sleep(3.3)
        came = anyio.current_time()
        in_flight.add(FakeSeat(delivery=delivery))
        await anyio.sleep(100)
    assert delivery.ticks[0] <= came + period_sec + 1e-6
    assert max(gaps(delivery.ticks)) == pytest.approx(period_sec)
    assert len(delivery.ticks) <= 100 / period_sec + 1


@in_virtual_time
async def test_an_idle_ticker_does_not_wake_up() -> None:
    """No delivery, no tick, no timer: law 8."""
    in_flight, delivery = InFlight(), FakeDelivery()
    seat = FakeSeat(delivery=delivery)
    in_flight.add(seat)
    async with alone(lambda: Ticker(in_flight, 10.0)):
        await anyio.sleep(1)
        in_flight.remove(seat)
        ticks = len(delivery.ticks)
        await anyio.sleep(1000)
    assert len(delivery.ticks) == ticks


@in_virtual_time
async def test_the_shortest_ack_wait_sets_the_pace() -> None:
    """A delivery with a short one that comes later is not late."""
    in_flight, slow, quick = InFlight(), FakeDelivery(ack_wait_sec=30), FakeDelivery(ack_wait_sec=3)
    async with alone(lambda: Ticker(in_flight, 10.0)):
        in_flight.add(FakeSeat(delivery=slow))
        await anyio.sleep(1)
        in_flight.add(FakeSeat(delivery=quick))
        await anyio.sleep(20)
    assert quick.ticks[0] == pytest.approx(2.0)
    assert max(gaps(quick.ticks)) == pytest.approx(1.0)


@in_virtual_time
async def test_thousands_of_short_runs_do_not_make_it_tick_more() -> None:
    """What comes and goes changes nothing for those that stay."""
    in_flight, stays = InFlight(), FakeDelivery(ack_wait_sec=30)
    async with alone(lambda: Ticker(in_flight, 10.0)):
        in_flight.add(FakeSeat(delivery=stays))
        for n in range(3000):
            seat = FakeSeat(f"r-{n}")
            in_flight.add(seat)
            await anyio.sleep(0.03)
            in_flight.remove(seat)
    assert 9 <= len(stays.ticks) <= 20
    assert max(gaps(stays.ticks)) <= 10.0 + 1e-6


@in_virtual_time
async def test_a_restart_in_the_middle_of_a_run_ticks_at_once() -> None:
    """An earlier life may have ended long ago."""
    in_flight, delivery = InFlight(), FakeDelivery(ack_wait_sec=30)
    in_flight.add(FakeSeat(delivery=delivery))
    async with alone(lambda: Ticker(in_flight, 10.0)) as tree:
        await anyio.sleep(9)
        await tree.restart("root/it")
        restarted = anyio.current_time()
        await anyio.sleep(9)
    assert delivery.ticks[1] == pytest.approx(restarted)
    assert max(gaps(delivery.ticks)) <= 10.0


@in_virtual_time
async def test_an_outage_is_logged_once_and_tried_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    """ERR-PYOCO-0009 at the first failure of each outage; a third of the ack wait would be a long wait then."""
    in_flight, delivery = InFlight(), FakeDelivery(ack_wait_sec=30)
    in_flight.add(FakeSeat(delivery=delivery))
    async with alone(lambda: Ticker(in_flight, 10.0)):
        await anyio.sleep(9.9)
        delivery.refuse = [NatsUnavailable("away")] * 5
        await anyio.sleep(8)
        assert len(delivery.ticks) == 2, "tried again well before the next period"
        await anyio.sleep(10)
        delivery.refuse = [NatsUnavailable("away")] * 2
        await anyio.sleep(20)
    said = [record for record in caplog.records if getattr(record, "err_id", None) == "ERR-PYOCO-0009"]
    assert len(said) == 2
    assert said[0].__dict__["run_id"] == "r-1"


@in_virtual_time
async def test_a_delivery_that_is_settled_during_a_round_gets_no_late_tick() -> None:
    """A sign of life after a NAK with a pause would keep the job back for a whole ack wait."""
    in_flight, first, second = InFlight(), FakeDelivery("r-1"), FakeDelivery("r-2")
    seat = FakeSeat("r-2", second)
    in_flight.add(FakeSeat("r-1", first))
    in_flight.add(seat)
    first.during = lambda: in_flight.remove(seat) if len(in_flight) == 2 else None
    async with alone(lambda: Ticker(in_flight, 10.0)):
        await anyio.sleep(1)
    assert (len(first.ticks), len(second.ticks)) == (1, 0)


@in_virtual_time
async def test_a_40_s_run_with_an_ack_wait_of_2_s_is_delivered_once() -> None:
    """The whole way on the memory queue, with the ticker restarted twice in between."""
    shop = Shop({"long": (StartTask("t"), Sleep(40.0), EndTask("t"))}, consumer=ConsumerSettings(ack_wait_sec=2.0))
    async with shop.open(ticker=lambda: Ticker(shop.in_flight, 10.0)) as tree:
        started = await shop.begin(flow_name="long")
        async with shop.process.work_queue.pulling("default") as puller:
            with anyio.move_on_after(20):
                await puller.wait()
            await tree.restart("shop/ticker")
            with anyio.move_on_after(15):
                await puller.wait()
        await tree.restart("shop/ticker")
        await started.end()
    assert shop.snapshot().status is RunStatus.COMPLETED
    assert len(list(shop.server.log.of(JobDelivered))) == 1
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_a_job_given_back_for_2_s_comes_back_after_2_s_with_a_busy_ticker() -> None:
    """The ticker does not touch what is settled."""
    shop = Shop({"long": (Sleep(60.0),)}, consumer=ConsumerSettings(ack_wait_sec=3.0))
    async with shop.open(ticker=lambda: Ticker(shop.in_flight, 0.1)):
        long = await shop.begin("r-1", "long")
        await shop.submit("r-2")
        delivery = await shop.take()
        shop.runner.refuse_begin = 1
        await shop.start(delivery).end()
        assert shop.settlements(2) == [HICCUP]
        began = anyio.current_time()
        await shop.start(await shop.take()).end()
        assert anyio.current_time() - began == pytest.approx(3.0, abs=0.01)  # the pause, and 1 s of the flow
        await long.end()


def test_the_ticker_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    in_flight: list[InFlight] = []

    def make() -> Ticker:
        in_flight.append(InFlight())
        for n in range(3):
            in_flight[-1].add(FakeSeat(f"r-{n}", FakeDelivery(ack_wait_sec=1.0)))
        return Ticker(in_flight[-1], 10.0)

    stress_start_cancel(make)
    assert not any(each._listeners for each in in_flight)
