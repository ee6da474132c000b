"""The actor that keeps the board of runs up to date, in virtual time: what only it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.actors.following import TURN
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, StoredRun
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.actors.index_houses import RunHouse
from tests.unit.actors.support import alone, in_virtual_time


@in_virtual_time
async def test_after_a_loss_of_the_connection_followers_are_told_what_they_have_missed() -> None:
    """What was written and removed meanwhile, and nothing else."""
    house = RunHouse()
    for n in range(10):
        house.write(n)
    async with alone(house.indexer):
        await anyio.sleep(1)
        house.process.disconnect()
        house.write(3)
        house.remove(4)
        house.vanish(5)
        with house.board.following(lambda _: True) as follower:
            house.process.reconnect()
            await anyio.sleep(1)
            assert house.is_current()
            heard = {(await follower.next()).run_id for _ in range(3)}
            assert heard == {"r-3", "r-4", "r-5"}


@in_virtual_time
async def test_a_restart_of_the_actor_loses_no_follower() -> None:
    """The board belongs to the tree."""
    house = RunHouse()
    house.write(1)
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        with house.board.following(lambda _: True) as many, house.board.following_run("r-1") as one:
            await tree.restart("root/it")
            await anyio.sleep(1)
            revision = house.write_run("r-1", RunStatus.COMPLETED)
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
    house = RunHouse()
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
