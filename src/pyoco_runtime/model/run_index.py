"""All runs in memory, as lists and metrics show them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from pyoco_runtime.model.positions import Position, Positions
from pyoco_runtime.model.roll_call import Behind, RollCall
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_cursor import cursor_from, cursor_to
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_shelf import RunShelf
from pyoco_runtime.model.run_summary import RunSummary, Summarizer
from pyoco_runtime.model.run_tally import OTHER_FLOWS

MAX_RUNS = 200_000  # about 125 MB, see RunIndex


@frozen
class RunPage:
    """A part of a list."""

    runs: tuple[RunSummary, ...]
    next_cursor: str | None
    """Where the next page begins, if there is one."""
    is_partial: bool
    """Runs that belong here may be stored, but are too old for the index."""


class RunIndex:
    """Every run once, by its latest revision, newest `updated_at` first, then the greatest run id first.

    A page costs O(log runs + answer), and O(tenants) besides if all tenants are asked for; only sha256 together with
    flow or tag may walk over all runs of that sha256 or of that flow and tag, whichever are fewer. An update costs
    O(log runs) in each of at most eleven sets. Counting costs O(1), except since a moment: O(runs / 512).

    Memory, measured on CPython 3.11: 550 to 620 bytes a run where flows, tags, workers and files repeat; 1,300 where
    each run has a sha256 of its own; 3,300 where nothing repeats; 41,000 at the limits of every text and list.
    """

    def __init__(self, max_runs: int = MAX_RUNS) -> None:
        self.revision = 0
        """The latest that was heard of, in this opening of the feed."""
        self._heard_before = 0
        """The latest that was heard of before all was told anew."""
        self._max_runs = max_runs
        self._runs: dict[str, RunSummary] = {}
        self._shelves: dict[str | None, RunShelf] = {}
        self._ended = Positions()
        self._calling = RollCall("runs")
        self._summarizer = Summarizer()
        self._fallen = _Fallen()
        self._fallen_now = _Fallen()
        """Only those since the last roll call began."""

    def __len__(self) -> int:
        return len(self._runs)

    # -- what the feed says --------------------------------------------------------------------------------------------

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self._calling.behind

    def lose(self, why: str, at: float) -> None:
        """Nothing more is heard from now on; what is here stays."""
        self._calling.lose(why, at)

    def begin_load(self) -> None:
        """From now on all that is stored is told, in the order of the revisions."""
        self._heard_before = max(self._heard_before, self.revision)
        self.revision = 0
        self._calling.begin(self._runs)
        self._fallen_now = _Fallen()

    def end_load(self) -> list[RunNews]:
        """All has been told: what was not is gone."""
        self._fallen = self._fallen_now
        return [news for run_id in self._calling.end() if (news := self.miss(run_id)) is not None]

    def put(self, snapshot: RunSnapshot, revision: int) -> RunNews | None:
        """This is stored; None if it is nothing new. Older revisions are ignored, save when all is told anew."""
        run_id = snapshot.run_id
        before = self._runs.get(run_id)
        # a bucket that was made anew or restored counts from the beginning again
        is_anew = self._calling.mention(run_id)
        self.revision = max(self.revision, revision)
        if before is not None and before.revision >= revision and not is_anew:
            return None
        after = self._summarizer.summary_of(snapshot, revision)
        if after == before:
            return None
        if before is not None:
            self._drop(before)
        self._keep(after)
        is_listed = self._trim(after)
        if before is None and not is_listed and self._is_old(revision):
            return None  # it has fallen out before
        return RunNews(
            run_id=run_id, revision=revision, before=before, after=after, snapshot=snapshot, is_listed=is_listed
        )

    def remove(self, run_id: str, revision: int) -> RunNews | None:
        """It was removed; None if that is nothing new, or it has been written again since."""
        before = self._runs.get(run_id)
        is_anew = self._calling.mention(run_id)
        self.revision = max(self.revision, revision)
        if before is not None and before.revision > revision and not is_anew:
            return None
        if before is not None:
            self._drop(before)
        elif self._is_old(revision):
            return None
        return RunNews(run_id=run_id, revision=revision, before=before, after=None)

    def miss(self, run_id: str) -> RunNews | None:
        """It was found to be gone though nobody said so: what grows too old vanishes without a word."""
        before = self._runs.get(run_id)
        if before is None:
            return None
        self._drop(before)
        return RunNews(run_id=run_id, revision=self.revision, before=before, after=None, is_late=True)

    # -- what is asked -------------------------------------------------------------------------------------------------

    @property
    def is_partial(self) -> bool:
        """More runs are stored than are here: the oldest that are over have fallen out."""
        return self._fallen.latest() is not None

    def get(self, run_id: str) -> RunSummary | None:
        """What is known of a run."""
        return self._runs.get(run_id)

    def open_runs(self) -> list[RunSummary]:
        """All that are not over; costs O(answer), and O(tenants)."""
        return [
            self._runs[position[1]]
            for shelf in self._shelves.values()
            for status in RunStatus
            if not status.is_terminal
            for position in shelf.candidates(RunFilter(status=status), None)
        ]

    def oldest(self) -> RunSummary | None:
        """The run that has been quiet for the longest time."""
        found = min((at for shelf in self._shelves.values() if (at := shelf.oldest()) is not None), default=None)
        return None if found is None else self._runs[found[1]]

    def query(self, wanted: RunFilter, limit: int, cursor: str | None = None) -> RunPage:
        """The newest runs that match, after the cursor. Raises InvalidQuery."""
        below = cursor_from(cursor) if cursor else None
        found: list[RunSummary] = []
        for position in self._candidates(wanted, below):
            if wanted.updated_after is not None and position[0] <= wanted.updated_after:
                break
            run = self._runs[position[1]]
            if wanted.matches(run):
                found.append(run)
                if len(found) > limit:
                    break
        has_more = len(found) > limit
        runs = tuple(found[:limit])
        next_cursor = cursor_to(runs[-1].position) if has_more and runs else None
        return RunPage(runs, next_cursor, self._fallen.may_belong(wanted, runs[-1].position if has_more else None))

    def counts(self, tenant: str | None = None) -> dict[RunStatus, int]:
        """How many runs have each status, of one tenant or of all."""
        shelves = self._shelves_of(tenant)
        return {status: sum(shelf.count(status) for shelf in shelves) for status in RunStatus}

    def counts_since(self, updated_from: float, tenant: str | None = None) -> dict[RunStatus, int]:
        """How many runs of each status were updated at that moment or later, of one tenant or of all."""
        shelves = self._shelves_of(tenant)
        return {status: sum(shelf.count_since(status, updated_from) for shelf in shelves) for status in RunStatus}

    def counts_by_flow(self, most: int, tenant: str | None = None) -> Mapping[tuple[str, RunStatus], int]:
        """How many runs of each flow have each status; beyond `most` flows of a tenant, all others are one."""
        counts: dict[tuple[str, RunStatus], int] = {}
        for shelf in self._shelves_of(tenant):
            rest = {status: shelf.count(status) for status in RunStatus}
            for _, flow in zip(range(most), shelf.flows(), strict=False):
                for status in RunStatus:
                    number = shelf.count(status, flow)
                    rest[status] -= number
                    _add(counts, (flow, status), number)
            for status, number in rest.items():
                _add(counts, (OTHER_FLOWS, status), number)
        return counts

    # -- inside --------------------------------------------------------------------------------------------------------

    def _is_old(self, revision: int) -> bool:
        """Whether this is only told because all is told anew."""
        return self._calling.is_on and revision <= self._heard_before

    def _shelves_of(self, tenant: str | None) -> list[RunShelf]:
        if tenant is None:
            return list(self._shelves.values())
        found = self._shelves.get(tenant)
        return [] if found is None else [found]

    def _candidates(self, wanted: RunFilter, below: Position | None) -> Iterable[Position]:
        found: list[Iterator[Position]] = [shelf.candidates(wanted, below) for shelf in self._shelves_of(wanted.tenant)]
        return found[0] if len(found) == 1 else heapq.merge(*found, reverse=True)

    def _keep(self, run: RunSummary) -> None:
        self._runs[run.run_id] = run
        shelf = self._shelves.get(run.tenant_id)
        if shelf is None:
            shelf = self._shelves[run.tenant_id] = RunShelf()
        shelf.add(run)
        if run.status.is_terminal:
            self._ended.add(run.position)

    def _drop(self, run: RunSummary) -> None:
        del self._runs[run.run_id]
        shelf = self._shelves[run.tenant_id]
        shelf.remove(run)
        if not len(shelf):
            del self._shelves[run.tenant_id]
        if run.status.is_terminal:
            self._ended.remove(run.position)

    def _trim(self, newcomer: RunSummary) -> bool:
        """Let the oldest fall out if there are too many; whether the newcomer is still there."""
        while len(self._runs) > self._max_runs:
            ended = self._ended.first()
            found = self.oldest() if ended is None else self._runs[ended[1]]
            if found is None:
                break
            self._drop(found)
            self._fallen.note(found)
            self._fallen_now.note(found)
        return newcomer.run_id in self._runs


class _Fallen:
    """The newest of the runs that have fallen out, among those that are over and among those that are not."""

    def __init__(self) -> None:
        self._newest: dict[bool, Position] = {}

    def note(self, run: RunSummary) -> None:
        ended = run.status.is_terminal
        self._newest[ended] = max(run.position, self._newest.get(ended, run.position))

    def latest(self, ended: bool | None = None) -> Position | None:
        return max((at for kind, at in self._newest.items() if ended is None or kind is ended), default=None)

    def may_belong(self, wanted: RunFilter, last: Position | None) -> bool:
        """Whether one that fell out may belong to a page that ends with `last`, or with the list if that is None."""
        latest = self.latest(None if wanted.status is None else wanted.status.is_terminal)
        if latest is None or (wanted.updated_after is not None and latest[0] <= wanted.updated_after):
            return False
        return last is None or latest > last


def _add(counts: dict[tuple[str, RunStatus], int], key: tuple[str, RunStatus], number: int) -> None:
    if number:
        counts[key] = counts.get(key, 0) + number
