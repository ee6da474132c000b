"""The one run of a worker that takes no other."""

from __future__ import annotations

import anyio

from pyoco_runtime.single_run import SingleRun
from tests.unit.actors.support import in_virtual_time


@in_virtual_time
async def test_it_is_waited_for_until_it_is_over() -> None:
    """However long it takes, once it was taken in time."""
    single = SingleRun()
    began = anyio.current_time()

    async def work() -> None:
        await anyio.sleep(1)
        single.begin()
        await anyio.sleep(10)
        single.end()

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        assert await single.wait(2)
        assert anyio.current_time() - began >= 11


@in_virtual_time
async def test_none_that_was_taken_in_time() -> None:
    """It is given up after that time."""
    assert not await SingleRun().wait(2)
