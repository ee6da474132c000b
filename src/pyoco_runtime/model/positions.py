"""A sorted set of positions in the list of runs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import itemgetter

Position = tuple[float, str]
"""When a run was updated, and its id: lists show the greatest first."""

BLOCK = 512  # positions; a block is split when it has twice as many, and joined to its neighbour when it has half

_last = itemgetter(-1)


class Positions:
    """Adding, removing and finding cost O(log n) comparisons and the shift of one block, whatever the size.

    Blocks of sorted lists: 8 to 9 bytes for each position in a large set, and little more than 200 for a set of one,
    which matters because there can be one for each value of a field.
    """

    __slots__ = ("_blocks", "_size")

    def __init__(self) -> None:
        self._blocks: list[list[Position]] = [[]]
        """In ascending order; none is empty but the first of an empty set."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, position: Position) -> None:
        """Put in one that is not there yet."""
        blocks = self._blocks
        at = 0 if len(blocks) == 1 else min(bisect_left(blocks, position, key=_last), len(blocks) - 1)
        block = blocks[at]
        insort(block, position)
        self._size += 1
        if len(block) >= 2 * BLOCK:
            blocks[at : at + 1] = [block[:BLOCK], block[BLOCK:]]

    def remove(self, position: Position) -> None:
        """Take out one that is there."""
        at, offset = self._find(position)
        del self._blocks[at][offset]
        self._size -= 1
        if len(self._blocks) > 1 and len(self._blocks[at]) < BLOCK // 2:
            self._join(at)

    def first(self) -> Position | None:
        """The least of all."""
        return self._blocks[0][0] if self._size else None

    def descending(self, below: Position | None = None) -> Iterator[Position]:
        """Those under `below`, the greatest first. Nothing may be added or removed meanwhile."""
        blocks = self._blocks
        at, offset = (len(blocks) - 1, len(blocks[-1])) if below is None else self._find(below)
        if at == len(blocks):
            at, offset = at - 1, len(blocks[-1])
        while at >= 0:
            block = blocks[at]
            for index in range(offset - 1, -1, -1):
                yield block[index]
            at -= 1
            offset = len(blocks[at])

    def count_from(self, position: Position) -> int:
        """How many are not less than this; costs O(n / block)."""
        at, offset = self._find(position)
        return sum(map(len, self._blocks[at:])) - offset

    def _find(self, position: Position) -> tuple[int, int]:
        """The block and the place in it of the first that is not less; past the last block if there is none."""
        blocks = self._blocks
        at = 0 if len(blocks) == 1 else bisect_left(blocks, position, key=_last)
        return (at, 0) if at == len(blocks) else (at, bisect_left(blocks[at], position))

    def _join(self, at: int) -> None:
        blocks = self._blocks
        left = at - 1 if at else 0
        joined = blocks[left] + blocks[left + 1]
        halves = [joined] if len(joined) < 2 * BLOCK else [joined[:BLOCK], joined[BLOCK:]]
        blocks[left : left + 2] = halves
