"""The actor that keeps the board of dead letters up to date, in virtual time: what only it does."""

from __future__ import annotations

import anyio

from tests.unit.actors.index_houses import LetterHouse
from tests.unit.actors.support import alone, in_virtual_time, settle_down


@in_virtual_time
async def test_what_is_too_old_is_forgotten_with_the_next_letter() -> None:
    """The stream says nothing when it throws one away."""
    house = LetterHouse(max_age_sec=100.0)
    house.write()
    async with alone(house.indexer):
        await anyio.sleep(90)
        house.write()
        await anyio.sleep(20)
        house.write()
        await settle_down()
        assert house.seqs() == [3, 2]
