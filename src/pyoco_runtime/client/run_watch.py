"""Following one run to its end."""

from __future__ import annotations

from math import inf
from typing import cast

from pyoco_runtime.client.answers import Run
from pyoco_runtime.client.errors import ClientError, NotAGateway, WaitTimeout
from pyoco_runtime.client.events import Heartbeat, Interrupted, RunChanged, RunEvent, is_terminal
from pyoco_runtime.client.persistence import Persistence
from pyoco_runtime.client.request import Request
from pyoco_runtime.client.requests import runs
from pyoco_runtime.client.sse import ServerEvent
from pyoco_runtime.client.watch import Watch, data_of


class RunWatch(Watch[RunEvent]):
    """Tells every change once, and the end always, however often the connection breaks.

    `since` is compared here and not by the gateway: workers write `updated_at` by their own clocks, and a gateway that
    leaves out the terminal state for it would let a watcher wait for ever. For the same reason no new connection asks
    for what is newer than the last event.
    """

    def __init__(
        self,
        run_id: str,
        *,
        since: float | None,
        include_records: bool,
        persistence: Persistence,
        ends_at: float | None = None,
    ) -> None:
        super().__init__(persistence, ends_at)
        self._run_id = run_id
        self._since = since
        self._include_records = include_records
        self._last: Run | None = None
        self._request(1)  # an id that makes no path is refused at once

    def _request(self, timeout_sec: int) -> Request[None]:
        return runs.watch_run(
            self._run_id,
            include_records=self._include_records,
            timeout_sec=timeout_sec,
            last_event_id=self.last_event_id,
        )

    def _told(self, event: ServerEvent) -> RunEvent | None:
        if event.name == "heartbeat":
            return Heartbeat(float(data_of(event).get("ts", 0.0)))
        if event.name != "snapshot":
            return None  # `end`, and what later gateways may have to say
        data = data_of(event)
        run = data.get("snapshot")
        if not isinstance(run, dict) or not isinstance(run.get("status"), str):
            raise NotAGateway("an event 'snapshot' came without a run; is it a gateway?")
        return self._change(cast("Run", {"run_id": self._run_id, **run}), float(data.get("ts", 0.0)), event.event_id)

    def _change(self, run: Run, ts: float, event_id: str | None) -> RunChanged | None:
        self.is_over = is_terminal(run)
        if not self.is_over and (run == self._last or self._is_old(run, event_id)):
            return None
        self._last = run
        return RunChanged(run, ts, event_id)

    def _is_old(self, run: Run, event_id: str | None) -> bool:
        if self._since is not None and (run.get("updated_at") or 0.0) < self._since:
            return True
        # another gateway, or another server of the cluster, may be a moment behind
        return _number(event_id, inf) < _number(self.last_event_id, -inf)

    def _interrupted(self, problem: ClientError, sec: float) -> RunEvent:
        return Interrupted(str(problem), sec)

    def _late(self) -> WaitTimeout:
        status = "unknown" if self._last is None else self._last["status"]
        return WaitTimeout(f"run {self._run_id} has not ended in time; its last known status is {status}")


def _number(event_id: str | None, unknown: float) -> float:
    return int(event_id) if event_id is not None and event_id.isascii() and event_id.isdigit() else unknown
