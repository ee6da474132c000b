"""How durations spread, in little memory: each is remembered to within 5 %."""

from __future__ import annotations

import math

from attrs import define, field

_LEAST_SEC = 0.001
_STEP = math.log(1.1)  # between two marks


@define
class Spread:
    """A histogram on a scale that grows by tenths, of which only the marks that occur take room."""

    _counts: dict[int, int] = field(factory=dict, init=False)

    @property
    def count(self) -> int:
        """How many in all."""
        return sum(self._counts.values())

    def observe(self, sec: float) -> None:
        """Count one."""
        mark = 0 if sec <= _LEAST_SEC else math.ceil(math.log(sec / _LEAST_SEC) / _STEP)
        self._counts[mark] = self._counts.get(mark, 0) + 1

    def add(self, other: Spread) -> None:
        """Count all of another."""
        for mark, number in other._counts.items():
            self._counts[mark] = self._counts.get(mark, 0) + number

    def quantile(self, share: float) -> float | None:
        """What this share of them did not exceed, in seconds; None if there are none."""
        wanted = share * self.count
        seen = 0
        for mark in sorted(self._counts):
            seen += self._counts[mark]
            if seen >= wanted:
                return _sec_at(mark)
        return None


def _sec_at(mark: int) -> float:
    """The middle between this mark and the one before, in three digits: more would pretend to be exact."""
    return float(f"{_LEAST_SEC * math.exp((mark - 0.5) * _STEP if mark else 0.0):.3g}")
