"""The actor that keeps the board of runs up to date, in virtual time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from pyoco_runtime.actors.following import RETRY_SEC, TURN
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.wire import snapshot_to
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, StoredRun
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import alone, in_virtual_time, settle_down

ALL = RunFilter()


class House:
    """A server, a gateway's process on it, and the board of that gateway."""

    def __init__(self, *, connected: bool = True) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway", connected=connected)
        self.board = RunBoard()

    def indexer(self) -> RunIndexer:
        return RunIndexer(self.board, self.process.run_store, self.process.link, virtual_clock)

    def write(self, run_id: str, status: RunStatus = RunStatus.RUNNING, **fields: Any) -> int:
        snapshot = RunSnapshot(run_id=run_id, flow_name="f", status=status, updated_at=virtual_clock(), **fields)
        return self.server.write_run(run_id, snapshot_to(snapshot, 262144)[0])

    def remove(self, run_id: str) -> None:
        self.server.runs.bucket.write(run_id, None, None)

    def is_current(self) -> bool:
        """What the board says of itself."""
        return self.board.behind is None

    def agrees(self) -> bool:
        """Whether the board has what is stored, and nothing else."""
        stored = {entry.key: entry.revision for entry in self.server.runs.bucket.entries() if entry.value is not None}
        return {each.run_id: each.revision for each in self.board.index.query(ALL, 100_000).runs} == stored


@in_virtual_time
async def test_first_what_is_stored_then_what_comes() -> None:
    """And the board says when it is up to date."""
    house = House()
    for n in range(300):
        house.write(f"r-{n}")
    assert not house.is_current()
    async with alone(house.indexer):
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()
        house.write("r-1", RunStatus.COMPLETED)
        house.write("new")
        house.remove("r-2")
        await settle_down()
        assert house.agrees()
    assert not house.is_current(), "nobody listens any more"
    assert len(house.board.index) == 300


@in_virtual_time
async def test_it_is_ready_before_there_is_a_connection() -> None:
    """The start of the house does not wait for NATS."""
    house = House(connected=False)
    async with alone(house.indexer):  # would not be entered otherwise
        await anyio.sleep(10)
        assert not house.is_current()
        house.write("r-1")
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()


@in_virtual_time
async def test_after_a_loss_of_the_connection_it_reconciles() -> None:
    """What was written and removed meanwhile is told, with the rest as it was; the board says since when it is old."""
    house = House()
    for n in range(10):
        house.write(f"r-{n}")
    async with alone(house.indexer):
        await anyio.sleep(1)
        lost_at = virtual_clock()
        house.process.disconnect()
        house.write("r-3", RunStatus.COMPLETED)
        house.remove("r-4")
        house.server.runs.bucket._entries.pop("r-5")  # without a marker, as if purged
        await anyio.sleep(60)
        behind = house.board.behind
        assert behind is not None
        assert behind.since == pytest.approx(lost_at)
        assert len(house.board.index) == 10, "what was known is kept meanwhile"
        with house.board.following(lambda _: True) as follower:
            house.process.reconnect()
            await anyio.sleep(1)
            assert house.is_current()
            assert house.agrees()
            heard = {(await follower.next()).run_id for _ in range(3)}
            assert heard == {"r-3", "r-4", "r-5"}


@pytest.mark.parametrize("how", ["open", "next", "slow"])
@in_virtual_time
async def test_a_feed_that_fails_is_opened_again(how: str) -> None:
    """Though the link says that it is up."""
    house = House()
    house.write("r-1")
    match how:
        case "open":
            house.server.faults.next("run_store.watch", Lost.BEFORE, Lost.AFTER)
        case "next":
            house.server.faults.next("run_store.watch_next", None, Lost.AFTER, None, None, None, Lost.AFTER)
        case _:
            house.server.faults.next("run_store.watch_next", Slow(3.0))
    async with alone(house.indexer):
        await anyio.sleep(0.1)
        house.write("r-2")
        await anyio.sleep(3 + 3 * RETRY_SEC)
        house.write("r-3")
        await anyio.sleep(3 * RETRY_SEC)
        assert house.is_current()
        assert house.agrees()


@in_virtual_time
async def test_values_that_cannot_be_read_are_no_runs() -> None:
    """Another program wrote them."""
    house = House()
    house.server.write_run("bad", b"not json")
    house.write("good")
    async with alone(house.indexer):
        await anyio.sleep(1)
        assert [each.run_id for each in house.board.index.query(ALL, 5).runs] == ["good"]


@in_virtual_time
async def test_a_restart_of_the_actor_loses_no_follower() -> None:
    """The board belongs to the tree."""
    house = House()
    house.write("r-1")
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        with house.board.following(lambda _: True) as many, house.board.following_run("r-1") as one:
            await tree.restart("root/it")
            await anyio.sleep(1)
            revision = house.write("r-1", RunStatus.COMPLETED)
            with anyio.fail_after(1):
                assert (await many.next()).revision == (await one.next()).revision == revision


class Eager:
    """A store whose feed has everything at hand and never waits, as that of NATS within a batch."""

    def __init__(self, count: int) -> None:
        self._left = count

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[Eager]:
        yield self

    async def next(self) -> RunChange:
        if not self._left:
            await anyio.sleep_forever()
        self._left -= 1
        if not self._left:
            return CaughtUp()
        snapshot = RunSnapshot(run_id=f"r-{self._left}", flow_name="f", status=RunStatus.COMPLETED)
        return RunChanged(StoredRun(snapshot, 10_000 - self._left))


@in_virtual_time
async def test_others_have_their_turn_while_much_is_loaded() -> None:
    """Never more than a turn's worth of changes between two of theirs."""
    house = House()
    store: Any = Eager(1000)
    seen = [0]
    async with alone(lambda: RunIndexer(house.board, store, house.process.link, virtual_clock)):
        while house.board.behind is not None:
            seen.append(len(house.board.index))
            await checkpoint()
    assert (
        max(two - one for one, two in pairwise(seen)) <= 2 * TURN
    )  # trio may let it go first in one pass and last in the next
    assert len(house.board.index) == 999


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_store_after_any_trouble(seed: int) -> None:
    """Writes, removals, lost feeds, lost connections and restarts of the actor, in any order; then calm."""
    dice = random.Random(seed)

    @in_virtual_time
    async def story() -> None:
        house = House()
        house.server.faults.rate("run_store.watch_next", Lost.AFTER, 0.02)
        house.server.faults.rate("run_store.watch", Lost.BEFORE, 0.2)
        async with alone(house.indexer) as tree:
            for _ in range(400):
                await trouble(house, tree, dice)
            house.server.faults.calm()
            house.process.reconnect()
            await anyio.sleep(5)
            assert house.is_current()
            assert house.agrees()

    for backend in ("trio", "asyncio"):
        story(backend=backend)


async def trouble(house: House, tree: Any, dice: random.Random) -> None:
    """One thing happens."""
    match dice.randrange(40):
        case 0:
            house.process.disconnect()
        case 1 | 2:
            house.process.reconnect()
        case 3:
            tree.request_restart("root/it")
        case n if n < 12:
            house.remove(f"r-{dice.randrange(30)}")
        case n if n < 20:
            await anyio.sleep(dice.random())
        case _:
            house.write(f"r-{dice.randrange(30)}", dice.choice(list(RunStatus)))


def test_the_indexer_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, and the board says that it is old."""
    houses: list[House] = []

    def make() -> RunIndexer:
        house = House()
        houses.append(house)
        for n in range(5):
            house.write(f"r-{n}")
        house.server.faults.next("run_store.watch", None, Lost.AFTER)
        house.server.faults.next("run_store.watch_next", *[None] * 3, Lost.AFTER)
        return house.indexer()

    stress_start_cancel(make)
    assert all(house.board.behind is not None for house in houses)
    assert not any(house.server.runs.bucket._listeners for house in houses)
