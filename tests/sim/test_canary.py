"""The private names of trio that make its scheduler replay; if one goes, this says so before a simulation lies."""

from __future__ import annotations

import trio

from pyoco_runtime.testing.virtual_time import run_virtual


def test_trio_still_has_the_names_that_seeding_uses() -> None:
    """trio is pinned to the version on which this was seen."""
    assert hasattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING")
    assert hasattr(trio._core._run._r, "seed")


def order(seed: int) -> list[int]:
    """In which order ten tasks run that are all ready."""
    ran: list[int] = []

    async def main() -> None:
        async def task(n: int) -> None:
            for _ in range(3):
                await trio.lowlevel.checkpoint()
                ran.append(n)

        async with trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(task, n)

    run_virtual(main, seed=seed)
    return ran


def test_a_seed_fixes_the_order_and_seeds_differ() -> None:
    """200 seeds, twice each."""
    first = [order(seed) for seed in range(200)]
    assert [order(seed) for seed in range(200)] == first
    assert len({tuple(ran) for ran in first}) > 190
