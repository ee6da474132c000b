"""How often something took how long."""

from __future__ import annotations

from bisect import bisect_left

from attrs import define, field


@define
class Histogram:
    """How many took at most each bound, in seconds, and more than the one before; the last are longer."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    sum_sec: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    @property
    def count(self) -> int:
        """How many in all."""
        return sum(self.counts)

    def observe(self, sec: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, sec)] += 1
        self.sum_sec += sec

    def add(self, other: Histogram) -> None:
        """Count all of another with the same bounds."""
        self.counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        self.sum_sec += other.sum_sec
