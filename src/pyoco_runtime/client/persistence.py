"""Whether a stream that has ended is opened again, and when."""

from __future__ import annotations

from pyoco_runtime.client.backoff import LONGEST_WISH_SEC, Backoff, wish_of
from pyoco_runtime.client.errors import ClientError, GatewayRefused, GatewayUnreachable
from pyoco_runtime.client.trial import PASSING

STEADY_SEC = 1.0  # a stream that lived so long ended because its time was up
PATIENCE_SEC = 60.0  # for a gateway that is replaced, or a machine that starts again


class Persistence:
    """Counts the failures of one stream: few are allowed before it was ever open, some time's worth after that."""

    def __init__(self, backoff: Backoff, patience_sec: float) -> None:
        self._backoff = backoff
        self._patience_sec = patience_sec
        self._failures = 0
        self._opened_at: float | None = None
        self._well_at: float | None = None

    def opened(self, now: float) -> None:
        """A stream has begun."""
        self._opened_at = now

    def well(self, now: float) -> None:
        """An event came."""
        self._failures = 0
        self._well_at = now

    def pause(self, problem: ClientError | None, retry_ms: int | None, now: float) -> float:
        """The seconds until it is opened again. Raises the problem if it is not."""
        lived_sec = 0.0 if self._opened_at is None else now - self._opened_at
        self._opened_at = None
        wish_sec = (retry_ms or 0) / 1000
        if problem is None and lived_sec >= STEADY_SEC:
            return min(wish_sec, LONGEST_WISH_SEC)
        self._failures += 1
        if isinstance(problem, GatewayRefused):
            wish_sec = max(wish_sec, wish_of(problem.response) or 0)
        if problem is not None and self._is_hopeless(problem, now):
            raise problem
        return max(self._backoff.pause(self._failures), min(wish_sec, LONGEST_WISH_SEC))

    def _is_hopeless(self, problem: ClientError, now: float) -> bool:
        passes = isinstance(problem, GatewayUnreachable) or (
            isinstance(problem, GatewayRefused) and problem.status in PASSING
        )
        if not passes:
            return True
        if self._well_at is None:
            return self._failures > self._backoff.retries
        return now - self._well_at > self._patience_sec
