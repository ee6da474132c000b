"""The actor that keeps the board of workers up to date, in virtual time: what only it does."""

from __future__ import annotations

import anyio

from tests.unit.actors.index_houses import WorkerHouse
from tests.unit.actors.support import alone, in_virtual_time


@in_virtual_time
async def test_a_restart_of_the_actor_loses_no_follower() -> None:
    """The board belongs to the tree."""
    house = WorkerHouse()
    house.write(1)
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        with house.board.following() as follower:
            await tree.restart("root/it")
            await anyio.sleep(1)
            with anyio.fail_after(1):
                await follower.next()
            house.write(1)
            with anyio.fail_after(1):
                await follower.next()
            assert house.agrees()
