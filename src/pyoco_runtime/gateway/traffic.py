"""How long HTTP requests take."""

from __future__ import annotations

from bisect import bisect_left

from attrs import define, field

BUCKETS_SEC = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds; most requests take a millisecond or two."""


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHODS = "(other)"  # a client may send any word as a method


@define
class Latency:
    """A histogram of one route: how many took at most each bound and more than the one before; the last is longer."""

    counts: list[int] = field(factory=lambda: [0] * (len(BUCKETS_SEC) + 1))
    sum_sec: float = 0.0


class Traffic:
    """Belongs to the tree: counters go on when the http actor restarts. Routes and methods are few: it has a bound."""

    def __init__(self) -> None:
        self.by_route: dict[tuple[str, str, int], Latency] = {}
        """By method, route and status."""
        self.streams = 0
        """Streams that are open now."""

    def note(self, method: str, route: str, status: int, took_sec: float) -> None:
        """Count one request; a route is a pattern, never a path."""
        method = method if method in METHODS else OTHER_METHODS
        found = self.by_route.get((method, route, status))
        if found is None:
            found = self.by_route[method, route, status] = Latency()
        found.counts[bisect_left(BUCKETS_SEC, took_sec)] += 1
        found.sum_sec += took_sec
