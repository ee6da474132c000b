"""The actors that keep the boards of runs, workers and dead letters, in virtual time: what all of them do."""

from __future__ import annotations

import random

import anyio
import pytest

from pyoco_runtime.actors.following import RETRY_SEC
from pyoco_runtime.core import Actor, Supervisor
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.index_houses import House, LetterHouse, RunHouse, WorkerHouse
from tests.unit.actors.support import alone, in_virtual_time, settle_down

every_house = pytest.mark.parametrize("house_of", [RunHouse, WorkerHouse, LetterHouse], ids=["runs", "workers", "dlq"])


@every_house
@in_virtual_time
async def test_first_what_is_stored_then_what_comes(house_of: type[House]) -> None:
    """And the board says when it is up to date. What cannot be read is nothing."""
    house = house_of()
    for n in range(200):
        house.write(n)
    house.litter()
    assert not house.is_current()
    async with alone(house.indexer):
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()
        house.write(1)
        house.litter()
        house.write(999)
        if house.tells_removals:
            house.remove(2)
        await settle_down()
        assert house.agrees()
    assert not house.is_current(), "nobody listens any more"
    assert len(house.board.index) >= 200


@every_house
@in_virtual_time
async def test_it_is_ready_before_there_is_a_connection(house_of: type[House]) -> None:
    """The start of the house does not wait for NATS."""
    house = house_of(connected=False)
    async with alone(house.indexer):  # would not be entered otherwise
        await anyio.sleep(10)
        assert not house.is_current()
        house.write(1)
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()


@every_house
@in_virtual_time
async def test_after_a_loss_of_the_connection_it_reconciles(house_of: type[House]) -> None:
    """What was written, removed, or has vanished meanwhile; the board says since when it is old."""
    house = house_of()
    for n in range(5):
        house.write(n)
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        lost_at = virtual_clock()
        house.process.disconnect()
        house.write(1)
        house.remove(2)
        house.vanish(3)
        await anyio.sleep(60)
        behind = house.board.behind
        assert behind is not None
        assert behind.since == pytest.approx(lost_at)
        assert len(house.board.index) == 5, "what was known is kept meanwhile"
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()
        house.vanish(1)
        await tree.restart("root/it")
        await anyio.sleep(1)
        assert house.agrees()


@every_house
@pytest.mark.parametrize("how", ["open", "next", "slow"])
@in_virtual_time
async def test_a_feed_that_fails_is_opened_again(house_of: type[House], how: str) -> None:
    """Though the link says that it is up."""
    house = house_of()
    house.write(1)
    match how:
        case "open":
            house.server.faults.next(house.watch, Lost.BEFORE, Lost.AFTER)
        case "next":
            house.server.faults.next(house.watch_next, None, Lost.AFTER, None, None, None, Lost.AFTER)
        case _:
            house.server.faults.next(house.watch_next, Slow(3.0))
    async with alone(house.indexer):
        await anyio.sleep(0.1)
        house.write(2)
        await anyio.sleep(3 + 3 * RETRY_SEC)
        house.write(3)
        await anyio.sleep(3 * RETRY_SEC)
        assert house.is_current()
        assert house.agrees()


@every_house
@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_store_after_any_trouble(house_of: type[House], seed: int) -> None:
    """Writes, removals, lost feeds, lost connections and restarts of the actor, in any order; then calm."""
    dice = random.Random(seed)

    @in_virtual_time
    async def story() -> None:
        house = house_of()
        house.server.faults.rate(house.watch_next, Lost.AFTER, 0.02)
        house.server.faults.rate(house.watch, Lost.BEFORE, 0.2)
        async with alone(house.indexer) as tree:
            for _ in range(300):
                await _trouble(house, tree, dice)
            house.server.faults.calm()
            house.process.disconnect()  # what a feed does not tell, the next one does
            await anyio.sleep(1)
            house.process.reconnect()
            await anyio.sleep(5)
            assert house.is_current()
            assert house.agrees()

    for backend in ("trio", "asyncio"):
        story(backend=backend)


async def _trouble(house: House, tree: Supervisor, dice: random.Random) -> None:
    number = dice.randrange(8)
    match dice.choices(["write", "remove", "vanish", "wait", "cut", "mend", "restart"], [40, 8, 4, 30, 6, 10, 2])[0]:
        case "write":
            house.write(number)
        case "remove":
            house.remove(number)
        case "vanish" if not house.process.link.is_up:
            house.vanish(number)
        case "cut":
            house.process.disconnect()
        case "mend" if not house.process.link.is_up:
            house.process.reconnect()
        case "restart":
            tree.request_restart("root/it")
        case _:
            await anyio.sleep(dice.random())


@every_house
def test_it_survives_start_and_cancel_stress(house_of: type[House]) -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, and the board says that it is old."""
    houses: list[House] = []

    def make() -> Actor:
        house = house_of()
        houses.append(house)
        for n in range(5):
            house.write(n)
        house.server.faults.next(house.watch, None, Lost.AFTER)
        house.server.faults.next(house.watch_next, *[None] * 3, Lost.AFTER)
        return house.indexer()

    stress_start_cancel(make, seeds=range(50))
    assert not any(house.is_current() for house in houses)
