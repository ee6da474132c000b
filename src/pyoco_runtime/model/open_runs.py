"""The runs that are not over, and when somebody should look after each of them."""

from __future__ import annotations

import heapq
import math

from attrs import evolve, frozen

from pyoco_runtime.model.reconcile import Limits, Place, places_of
from pyoco_runtime.model.run import RunSnapshot, RunStatus, submission_of


@frozen
class OpenRun:
    """What is kept of a run that is not over; times are of the monotonic clock, except `submitted_at`."""

    run_id: str
    tag: str | None
    status: RunStatus
    revision: int
    seq: int | None
    submitted_at: float | None
    since: float
    """When we heard of this revision. Our own clock: those of the writers may differ."""
    due: float
    looks: int = 0

    @property
    def places(self) -> tuple[Place, ...]:
        """Where its job can be."""
        return places_of(self.seq, self.tag, self.submitted_at)


class OpenRuns:
    """Grows with the runs that are open, and with those that were just now; not with those that are stored."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._runs: dict[str, OpenRun] = {}
        self._unheard: set[str] | None = None
        """While all is told anew: what was known before and was not told yet."""
        self._heap: list[tuple[float, str]] = []
        self._in_heap: dict[str, float] = {}
        """The heap's one valid item of each run; it may be too early, never too late."""

    def __len__(self) -> int:
        return len(self._runs)

    # -- what the feed says --------------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """From now on all that is stored is told."""
        self._unheard = set(self._runs)

    def end_load(self) -> None:
        """All has been told: what was not is gone."""
        for run_id in self._unheard or ():
            self.forget(run_id)
        self._unheard = None

    def note(self, snapshot: RunSnapshot, revision: int, now: float) -> None:
        """This is stored. The same revision again is no news: the run has been quiet all the time."""
        known = self._runs.get(snapshot.run_id)
        if self._unheard is not None:
            self._unheard.discard(snapshot.run_id)
        if snapshot.status.is_terminal:
            self.forget(snapshot.run_id)
        elif known is None or known.revision != revision:
            self._keep(_open_run(snapshot, revision, known, now, self._limits.patience_sec(snapshot.status)))

    def forget(self, run_id: str) -> None:
        """It is over, or gone."""
        if self._runs.pop(run_id, None) is not None:
            self._in_heap.pop(run_id, None)

    # -- what to do ----------------------------------------------------------------------------------------------------

    def next_due(self) -> float:
        """Nothing is due before this moment."""
        while self._heap and self._in_heap.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def take_due(self, now: float) -> OpenRun | None:
        """The run that is due for the longest time, if one is; `postpone` it after the look."""
        while self.next_due() <= now:
            at, run_id = heapq.heappop(self._heap)
            del self._in_heap[run_id]
            run = self._runs[run_id]
            if run.due <= at:
                return run
            self._keep(run)  # it has shown a sign of life since
        return None

    def postpone(self, run: OpenRun, now: float) -> None:
        """It was looked at, and is to be looked at again, unless there was news of it meanwhile."""
        if self._runs.get(run.run_id) == run:
            looks = run.looks + 1
            self._keep(evolve(run, looks=looks, due=now + self._limits.pause_sec(run.status, looks)))

    def put_back(self, run: OpenRun, now: float) -> None:
        """It could not be looked at: once more after the usual time, unless there was news of it meanwhile."""
        if self._runs.get(run.run_id) == run:
            self._keep(evolve(run, due=now + self._limits.patience_sec(run.status)))

    def is_quiet(self, run_id: str, revision: int, now: float) -> bool:
        """Whether it has been at that revision for so long that somebody should look."""
        run = self._runs.get(run_id)
        return run is not None and run.revision == revision and now - run.since >= self._limits.patience_sec(run.status)

    def _keep(self, run: OpenRun) -> None:
        self._runs[run.run_id] = run
        # a sign of life moves `due` every second: the item in the heap is mended only when its time comes
        if self._in_heap.get(run.run_id, math.inf) > run.due:
            self._in_heap[run.run_id] = run.due
            heapq.heappush(self._heap, (run.due, run.run_id))


def _open_run(snapshot: RunSnapshot, revision: int, known: OpenRun | None, now: float, patience_sec: float) -> OpenRun:
    """Writers that do not know `attempt` and `submitted_at` drop them: what was known before is still true."""
    seq = snapshot.attempt.seq if snapshot.attempt else None
    submitted_at = submission_of(snapshot)
    return OpenRun(
        run_id=snapshot.run_id,
        tag=snapshot.tag,
        status=snapshot.status,
        revision=revision,
        seq=known.seq if seq is None and known is not None else seq,
        submitted_at=known.submitted_at if submitted_at is None and known is not None else submitted_at,
        since=now,
        due=now + patience_sec,
    )
