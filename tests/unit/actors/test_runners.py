"""The actor that keeps the processes warm."""

from __future__ import annotations

import anyio

from pyoco_runtime.actors.runners import Runners
from pyoco_runtime.core import Phase
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import alone, in_virtual_time


class Pool:
    """Processes that are kept warm, or not."""

    def __init__(self) -> None:
        self.warm = 0
        self.lives = 0
        self.closed = 0

    async def keep_warm(self) -> None:
        self.lives += 1
        self.warm += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.warm -= 1

    async def close(self) -> None:
        self.closed += 1


@in_virtual_time
async def test_it_is_ready_at_once_and_keeps_the_pool_warm() -> None:
    """A restart is a new life with the same pool, which it never closes: runs may be in it."""
    pool = Pool()
    async with alone(lambda: Runners(pool)) as tree:
        assert tree.status().children[0].phase is Phase.RUNNING
        await anyio.sleep(10)
        assert pool.warm == 1
        await tree.restart("root/it")
        await anyio.sleep(10)
        assert (pool.warm, pool.lives) == (1, 2)
    assert (pool.warm, pool.closed) == (0, 0)


def test_the_runners_survive_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    pools: list[Pool] = []

    def make() -> Runners:
        pools.append(Pool())
        return Runners(pools[-1])

    stress_start_cancel(make)
    assert not any(pool.warm or pool.closed for pool in pools)
