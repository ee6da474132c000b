"""What a run waits for, from what this gateway knows of the workers."""

from __future__ import annotations

from typing import Any

from pyoco_runtime.model.crew import Crew, crew_of
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.waiting import Scene, waiting_for
from pyoco_runtime.model.worker import effective_state
from pyoco_runtime.ports import Clock
from pyoco_runtime.worker_board import WorkerBoard

MOST_WORKERS = 10_000  # to look at


class Waits:
    """Looks at the live workers each time: for single runs, not for lists."""

    def __init__(
        self, workers: WorkerBoard, clock: Clock, *, disconnect_timeout_sec: float, stale_after_sec: float
    ) -> None:
        self._workers = workers
        self._clock = clock
        self._disconnect_timeout_sec = disconnect_timeout_sec
        self._stale_after_sec = stale_after_sec

    def of(self, run: RunSnapshot) -> dict[str, Any] | None:
        """The reason as it is shown; None if the run is over."""
        if run.status.is_terminal:
            return None
        now = self._clock()
        record = None if run.worker_id is None else self._workers.index.get(run.worker_id)
        scene = Scene(
            crew=self._crew(run.tag, now) if run.worker_id is None else None,
            is_known=self._workers.behind is None,
            owner=None if record is None else effective_state(record, now, self._disconnect_timeout_sec),
            stale_after_sec=self._stale_after_sec,
        )
        found = waiting_for(run, scene, now)
        return None if found is None else {"code": found.code, **found.values}

    def _crew(self, tag: str | None, now: float) -> Crew | None:
        if tag is None:
            return None
        active = self._workers.index.query(
            now=now,
            disconnect_timeout_sec=self._disconnect_timeout_sec,
            include_hidden=True,
            limit=MOST_WORKERS,
        )
        return crew_of(tag, active)
