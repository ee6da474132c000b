"""What all streams have in common: how one is followed over many connections. No I/O: both clients carry it out."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from attrs import evolve, frozen

from pyoco_runtime.client.errors import ClientError, NotAGateway, WaitTimeout
from pyoco_runtime.client.persistence import Persistence
from pyoco_runtime.client.request import Request
from pyoco_runtime.client.sse import ServerEvent

E = TypeVar("E")

SILENCE_SEC = 20.0  # gateways give a sign of life every 5 s
STREAM_SEC = 300  # then a new one: proxies and gateways end longer ones


@frozen
class Resume(Generic[E]):
    """Tell this, if there is something to tell; wait, and open the stream again."""

    sec: float
    told: E | None


class Watch(Generic[E]):
    """The state of one watcher."""

    def __init__(self, persistence: Persistence, ends_at: float | None = None) -> None:
        self.is_over = False
        """The last event was told."""
        self.last_event_id: str | None = None
        self._persistence = persistence
        self._ends_at = ends_at

    def open(self, now: float) -> Request[None]:
        """The request for the next stream. Raises WaitTimeout."""
        left = self._left(now)
        return evolve(self._request(max(1, int(min(left, STREAM_SEC)))), silence_sec=min(left, SILENCE_SEC))

    def opened(self, now: float) -> None:
        """The stream has begun."""
        self._persistence.opened(now)

    def take(self, event: ServerEvent, now: float) -> E | None:
        """What the watcher is told of this event, if anything. Raises WaitTimeout, NotAGateway."""
        self._persistence.well(now)
        told = self._told(event)
        self.last_event_id = event.event_id or self.last_event_id
        if not self.is_over:
            self._left(now)
        return told

    def ended(self, problem: ClientError | None, retry_ms: int | None, now: float) -> Resume[E] | None:
        """What to do when the stream is over, if it goes on. Raises WaitTimeout, or the problem."""
        left = self._left(now)
        sec = min(self._persistence.pause(problem, retry_ms, now), left)
        return Resume(sec, None if problem is None else self._interrupted(problem, sec))

    def _request(self, timeout_sec: int) -> Request[None]:
        raise NotImplementedError

    def _told(self, event: ServerEvent) -> E | None:
        raise NotImplementedError

    def _interrupted(self, problem: ClientError, sec: float) -> E | None:
        raise NotImplementedError

    def _late(self) -> WaitTimeout:
        return WaitTimeout("it was not over in time")

    def _left(self, now: float) -> float:
        left = float("inf") if self._ends_at is None else self._ends_at - now
        if left <= 0:
            raise self._late()
        return left


def data_of(event: ServerEvent) -> dict[str, Any]:
    """The data of an event of ours. Raises NotAGateway."""
    try:
        found = json.loads(event.data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise NotAGateway(f"an event {event.name!r} came whose data is not a JSON object; is it a gateway?")
    return found
