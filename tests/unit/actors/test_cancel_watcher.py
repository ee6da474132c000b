"""The cancel watcher in virtual time: on fakes for when it looks, and with real runs for how soon they stop."""

from __future__ import annotations

import math

import anyio
import pytest

from pyoco_runtime.actors.cancel_watcher import CancelWatcher
from pyoco_runtime.in_flight import InFlight
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.testing.fake_runner import Script, Sleep, StartTask
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import FakeSeat, Shop, alone, in_virtual_time, settle_down

HANGS: dict[str, Script] = {"hangs": (StartTask("t"), Sleep(math.inf))}
SOON_SEC = 0.5  # "well under a second"


def watcher(shop: Shop) -> CancelWatcher:
    return CancelWatcher(shop.in_flight, shop.process.run_store, shop.process.link, virtual_clock)


class Watched:
    """A watcher on a store that counts what it is asked for."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("w-1")
        self.in_flight = InFlight()
        self.chosen: list[frozenset[str]] = []
        server_watch = self.process.run_store.watching
        outer = self

        class Store:
            def __getattr__(self, name: str) -> object:
                return getattr(outer.process.run_store, name)

            def watching(self) -> object:
                return Counting(server_watch(), outer.chosen)

        self.store = Store()

    def watcher(self) -> CancelWatcher:
        return CancelWatcher(self.in_flight, self.store, self.process.link, virtual_clock)  # type: ignore[arg-type]

    def write(self, run_id: str) -> None:
        self.server.write_run(run_id, b"{}")


class Counting:
    """A watch that tells whom it was asked to listen to."""

    def __init__(self, inner: object, chosen: list[frozenset[str]]) -> None:
        self._inner: object = inner
        self._chosen = chosen

    async def __aenter__(self) -> Counting:
        self._watch = await self._inner.__aenter__()  # type: ignore[attr-defined]
        return self

    async def __aexit__(self, *error: object) -> object:
        return await self._inner.__aexit__(*error)  # type: ignore[attr-defined]

    async def choose(self, run_ids: frozenset[str]) -> None:
        self._chosen.append(run_ids)
        await self._watch.choose(run_ids)

    async def next(self) -> str:
        found: str = await self._watch.next()
        return found


@in_virtual_time
async def test_a_hint_reaches_the_run_at_once() -> None:
    """And only the run that it is about."""
    world = Watched()
    async with alone(world.watcher):
        one, other = FakeSeat("r-1"), FakeSeat("r-2")
        world.in_flight.add(one)
        world.in_flight.add(other)
        await anyio.sleep(1)
        before = len(one.looks), len(other.looks)
        world.write("r-1")
        await settle_down()
        assert (len(one.looks), len(other.looks)) == (before[0] + 1, before[1])


@in_virtual_time
async def test_runs_shorter_than_a_fifth_of_a_second_cost_no_subscription() -> None:
    """A thousand of them, and nothing was asked of the server."""
    world = Watched()
    async with alone(world.watcher):
        for n in range(1000):
            seat = FakeSeat(f"r-{n}")
            world.in_flight.add(seat)
            await anyio.sleep(0.15)
            world.in_flight.remove(seat)
    assert not any(world.chosen)


@in_virtual_time
async def test_what_was_written_before_the_watch_stood_is_seen() -> None:
    """Each run is told to look once when it is first listened to."""
    world = Watched()
    async with alone(world.watcher):
        await anyio.sleep(1)
        seat = FakeSeat("r-1")
        world.in_flight.add(seat)
        world.write("r-1")
        began = anyio.current_time()
        await anyio.sleep(1)
        assert len(seat.looks) == 1
        assert seat.looks[0] - began <= 0.2 + 1e-3


@pytest.mark.parametrize("how", ["link", "watch", "choose"])
@in_virtual_time
async def test_after_a_loss_every_run_looks_again(how: str) -> None:
    """The link, the watch or the wish to hear of others was lost: what came meanwhile is seen."""
    world = Watched()
    async with alone(world.watcher):
        seat = FakeSeat("r-1")
        world.in_flight.add(seat)
        await anyio.sleep(1)
        if how == "link":
            world.process.disconnect()
            await anyio.sleep(5)
        elif how == "watch":
            world.server.faults.next("run_store.watch_next", Lost.AFTER)
        else:
            world.server.faults.next("run_store.watch", Lost.AFTER)
            world.in_flight.add(FakeSeat("r-2"))
            await anyio.sleep(0.3)
        world.write("r-1")
        looks = len(seat.looks)
        world.process.reconnect()
        await anyio.sleep(1)
        assert len(seat.looks) > looks


@in_virtual_time
async def test_runs_that_are_over_are_not_listened_to() -> None:
    """The choice follows what is in flight."""
    world = Watched()
    async with alone(world.watcher):
        seats = [FakeSeat(f"r-{n}") for n in range(3)]
        for seat in seats:
            world.in_flight.add(seat)
        await anyio.sleep(1)
        world.in_flight.remove(seats[0])
        await anyio.sleep(1)
    assert world.chosen == [frozenset({"r-0", "r-1", "r-2"}), frozenset({"r-1", "r-2"})]


@in_virtual_time
async def test_two_deliveries_of_one_run_are_both_told() -> None:
    """An older attempt may still be here when the newer one comes to the same worker."""
    world = Watched()
    async with alone(world.watcher):
        older, newer = FakeSeat("r-1"), FakeSeat("r-1")
        world.in_flight.add(older)
        world.in_flight.add(newer)
        await anyio.sleep(1)
        world.write("r-1")
        await settle_down()
        assert older.looks
        assert newer.looks


@pytest.mark.parametrize("after_sec", [0.0, 0.1, 5.0])
@in_virtual_time
async def test_a_cancel_reaches_a_running_flow_in_well_under_a_second(after_sec: float) -> None:
    """Also one that comes before the watch stands."""
    shop = Shop(HANGS)
    async with shop.open(watcher=lambda: watcher(shop)):
        started = await shop.begin(flow_name="hangs")
        await settle_down()
        await anyio.sleep(after_sec)
        assert shop.snapshot().status is RunStatus.RUNNING
        shop.cancel()
        await started.end(within_sec=SOON_SEC)
    assert shop.snapshot().status is RunStatus.CANCELLED


@in_virtual_time
async def test_a_cancel_while_the_watcher_is_down_is_seen_by_its_next_life() -> None:
    """Restarted alone in the middle of a run, just as somebody cancels."""
    shop = Shop(HANGS)
    async with shop.open(watcher=lambda: watcher(shop)) as tree:
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        tree.request_restart("shop/watcher")
        shop.cancel()
        await started.end(within_sec=SOON_SEC)


@in_virtual_time
async def test_an_idle_watcher_asks_for_nothing() -> None:
    """No run, no timer, no subscription for a day: law 8."""
    world = Watched()
    async with alone(world.watcher):
        await anyio.sleep(80000)
    assert world.chosen == []


def test_the_watcher_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    worlds: list[Watched] = []

    def make() -> CancelWatcher:
        worlds.append(Watched())
        for n in range(3):
            worlds[-1].in_flight.add(FakeSeat(f"r-{n}"))
        worlds[-1].server.faults.next("run_store.watch", None, Lost.AFTER)
        return worlds[-1].watcher()

    stress_start_cancel(make)
    assert not any(world.in_flight._listeners for world in worlds)
