"""One stream of a run, as the published client gives it."""

from __future__ import annotations

import json
from typing import Any

from pyoco_runtime.client.answers import WatchEvent
from pyoco_runtime.client.errors import ClientError
from pyoco_runtime.client.persistence import Persistence
from pyoco_runtime.client.request import Request
from pyoco_runtime.client.sse import ServerEvent
from pyoco_runtime.client.watch import Resume, Watch


class PlainWatch(Watch[WatchEvent]):
    """Every event of one stream, whatever it is; over when the stream is."""

    def __init__(self, request: Request[None], persistence: Persistence) -> None:
        super().__init__(persistence)
        self._asked = request
        self._has_begun = False

    def opened(self, now: float) -> None:
        """The one stream has begun."""
        super().opened(now)
        self._has_begun = True

    def ended(self, problem: ClientError | None, retry_ms: int | None, now: float) -> Resume[WatchEvent] | None:
        """The end, unless it has not begun. Raises the problem."""
        if not self._has_begun:
            return super().ended(problem, retry_ms, now)
        if problem is not None:
            raise problem
        return None

    def _request(self, timeout_sec: int) -> Request[None]:
        return self._asked

    def _told(self, event: ServerEvent) -> WatchEvent:
        return {"event": event.name, "data": _read(event.data)}

    def _interrupted(self, problem: ClientError, sec: float) -> None:
        return None  # the published client has no such event


def _read(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {"raw": data}
