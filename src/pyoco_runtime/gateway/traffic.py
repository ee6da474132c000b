"""How long HTTP requests take."""

from __future__ import annotations

from pyoco_runtime.model.histogram import Histogram

BUCKETS_SEC = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds; most requests take a millisecond or two."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHODS = "(other)"  # a client may send any word as a method


class Traffic:
    """Belongs to the tree: counters go on when the http actor restarts. Routes and methods are few: it has a bound."""

    def __init__(self) -> None:
        self.by_route: dict[tuple[str, str, int], Histogram] = {}
        """By method, route and status."""

    def note(self, method: str, route: str, status: int, took_sec: float) -> None:
        """Count one request; a route is a pattern, never a path."""
        method = method if method in METHODS else OTHER_METHODS
        found = self.by_route.get((method, route, status))
        if found is None:
            found = self.by_route[method, route, status] = Histogram(BUCKETS_SEC)
        found.observe(took_sec)
