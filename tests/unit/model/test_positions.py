"""The sorted set against a sorted list."""

from __future__ import annotations

import random
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model import positions
from pyoco_runtime.model.positions import Position, Positions

SMALL = st.tuples(st.integers(0, 20).map(float), st.sampled_from("abcdef"))


@given(steps=st.lists(SMALL, max_size=120), below=SMALL, block=st.sampled_from([2, 3, 8]))
def test_it_agrees_with_a_sorted_list(steps: list[Position], below: Position, block: int) -> None:
    """Each step adds a position that is not there, or removes it if it is; blocks split and join all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "BLOCK", block)
        found, naive = Positions(), set[Position]()
        for position in steps:
            (found.remove if position in naive else found.add)(position)
            naive ^= {position}
            assert len(found) == len(naive)
            assert found.first() == min(naive, default=None)
        descending = sorted(naive, reverse=True)
        assert list(found.descending()) == descending
        assert list(found.descending(below)) == [each for each in descending if each < below]
        assert found.count_from(below) == len(list(takewhile(lambda each: each >= below, descending)))


def test_a_large_set_keeps_its_order_and_its_blocks_small() -> None:
    """In random order, ten thousand in and nine thousand out."""
    dice = random.Random(7)
    everything = [(float(n), str(n)) for n in range(10_000)]
    found = Positions()
    for position in dice.sample(everything, len(everything)):
        found.add(position)
    gone = set(dice.sample(everything, 9_000))
    for position in gone:
        found.remove(position)
    assert list(found.descending()) == sorted(set(everything) - gone, reverse=True)
    assert all(len(block) < 2 * positions.BLOCK for block in found._blocks)
    assert len(found._blocks) <= 1 + 1_000 // (positions.BLOCK // 2)
