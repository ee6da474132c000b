"""The actor that keeps the board of workers up to date, in virtual time."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from pyoco_runtime.actors.following import RETRY_SEC
from pyoco_runtime.actors.worker_index import WorkerIndexer
from pyoco_runtime.core import Supervisor
from pyoco_runtime.model.worker import WorkerRecord, WorkerState
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from pyoco_runtime.worker_board import WorkerBoard
from tests.unit.actors.support import alone, in_virtual_time, settle_down


class House:
    """A server, a gateway's process on it, and the board of that gateway."""

    def __init__(self, *, connected: bool = True) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway", connected=connected)
        self.board = WorkerBoard()

    def indexer(self) -> WorkerIndexer:
        return WorkerIndexer(self.board, self.process.registry, self.process.link, virtual_clock)

    def write(self, worker_id: str, **fields: Any) -> None:
        now = virtual_clock()
        self.server.write_worker(
            WorkerRecord(worker_id=worker_id, instance_id="i", state=WorkerState.IDLE, last_seen_at=now, **fields)
        )

    def remove(self, worker_id: str) -> None:
        self.server.workers.write(worker_id, None, None)

    def vanish(self, worker_id: str) -> None:
        """It grows too old: nobody is told."""
        self.server.workers._entries.pop(worker_id, None)

    def is_current(self) -> bool:
        return self.board.behind is None

    def agrees(self) -> bool:
        """Whether the board has what is stored, and nothing else."""
        stored = [self.server.worker(each.key) for each in self.server.workers.entries() if each.value is not None]
        found = self.board.index.query(
            now=virtual_clock(), disconnect_timeout_sec=1.0, scope="all", include_hidden=True, limit=1000
        )
        return {each.worker_id: each for each in found} == {each.worker_id: each for each in stored if each}


@in_virtual_time
async def test_first_what_is_stored_then_what_comes() -> None:
    """And the board says when it is up to date."""
    house = House()
    for n in range(200):
        house.write(f"w-{n}")
    assert not house.is_current()
    async with alone(house.indexer):
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()
        house.write("w-1", current_run_id="r")
        house.write("new")
        house.remove("w-2")
        await settle_down()
        assert house.agrees()
    assert not house.is_current(), "nobody listens any more"
    assert len(house.board.index) == 200


@in_virtual_time
async def test_it_is_ready_before_there_is_a_connection() -> None:
    """The start of the house does not wait for NATS."""
    house = House(connected=False)
    async with alone(house.indexer):  # would not be entered otherwise
        await anyio.sleep(10)
        assert not house.is_current()
        house.write("w")
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()


@in_virtual_time
async def test_after_a_loss_of_the_connection_it_reconciles() -> None:
    """What was written, removed, or has vanished meanwhile; the board says since when it is old."""
    house = House()
    for n in range(5):
        house.write(f"w-{n}")
    async with alone(house.indexer):
        await anyio.sleep(1)
        lost_at = virtual_clock()
        house.process.disconnect()
        house.write("w-1", hidden=True)
        house.remove("w-2")
        house.vanish("w-3")
        await anyio.sleep(60)
        behind = house.board.behind
        assert behind is not None
        assert behind.since == pytest.approx(lost_at)
        assert len(house.board.index) == 5, "what was known is kept meanwhile"
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert len(house.board.index) == 3
        assert house.board.index.get("w-1") == house.server.worker("w-1")


@pytest.mark.parametrize("how", ["open", "next", "slow"])
@in_virtual_time
async def test_a_feed_that_fails_is_opened_again(how: str) -> None:
    """Though the link says that it is up."""
    house = House()
    house.write("w-1")
    match how:
        case "open":
            house.server.faults.next("registry.watch", Lost.BEFORE, Lost.AFTER)
        case "next":
            house.server.faults.next("registry.watch_next", None, Lost.AFTER, None, None, None, Lost.AFTER)
        case _:
            house.server.faults.next("registry.watch_next", Slow(3.0))
    async with alone(house.indexer):
        await anyio.sleep(0.1)
        house.write("w-2")
        await anyio.sleep(3 + 3 * RETRY_SEC)
        house.write("w-3")
        await anyio.sleep(3 * RETRY_SEC)
        assert house.is_current()
        assert house.agrees()


@in_virtual_time
async def test_a_restart_of_the_actor_loses_no_follower() -> None:
    """The board belongs to the tree."""
    house = House()
    house.write("w")
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        with house.board.following() as follower:
            await tree.restart("root/it")
            await anyio.sleep(1)
            with anyio.fail_after(1):
                await follower.next()
            house.write("w", hidden=True)
            with anyio.fail_after(1):
                await follower.next()
            assert house.agrees()


async def _trouble(house: House, tree: Supervisor, dice: random.Random) -> None:
    worker_id = f"w-{dice.randrange(8)}"
    match dice.choices(["write", "remove", "vanish", "wait", "cut", "mend", "restart"], [40, 8, 4, 30, 6, 10, 2])[0]:
        case "write":
            house.write(worker_id, last_run_id=str(dice.random()))
        case "remove":
            house.remove(worker_id)
        case "vanish" if not house.process.link.is_up:
            house.vanish(worker_id)
        case "cut":
            house.process.disconnect()
        case "mend":
            house.process.reconnect()
        case "restart":
            await tree.restart("root/it")
        case _:
            await anyio.sleep(dice.random())


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_store_after_any_trouble(seed: int) -> None:
    """Writes, removals, lost feeds, lost connections and restarts of the actor, in any order; then calm."""
    dice = random.Random(seed)

    async def story() -> None:
        house = House()
        house.server.faults.rate("registry.watch_next", Lost.AFTER, 0.02)
        house.server.faults.rate("registry.watch", Lost.BEFORE, 0.2)
        async with alone(house.indexer) as tree:
            for _ in range(300):
                await _trouble(house, tree, dice)
            house.server.faults.calm()
            house.process.reconnect()
            await anyio.sleep(5)
            assert house.is_current()
            assert house.agrees()

    in_virtual_time(story)(backend="trio")


def test_it_can_be_started_and_cancelled_at_any_moment() -> None:
    """It leaves nothing behind."""
    stress_start_cancel(lambda: House().indexer(), seeds=range(50))
