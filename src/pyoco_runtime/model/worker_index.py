"""All workers in memory, as lists and metrics show them."""

from __future__ import annotations

from attrs import frozen

from pyoco_runtime.model.offer import Offered
from pyoco_runtime.model.positions import Positions
from pyoco_runtime.model.roll_call import Behind, RollCall
from pyoco_runtime.model.run_summary import instant
from pyoco_runtime.model.worker import WorkerRecord, WorkerState, effective_state

ACTIVE = "active"
"""The scope of those that run or are idle; any other is all."""

_ACTIVE_STATES = frozenset({WorkerState.RUNNING, WorkerState.IDLE})
_LONG_SEC = 6.0  # since the last sign of life: the next one may bring a worker back, and is no mere heartbeat
_EVERYBODY = Offered(frozenset(), frozenset())


@frozen
class _Known:
    """A worker as it was told last."""

    record: WorkerRecord
    revision: int
    seen_at: float
    written_at: float


class WorkerIndex:
    """Every worker once, by its latest revision. An update costs O(log workers).

    A list costs O(answer) if no state is asked for; in the scope `active` it never looks at those that are silent for
    too long. A record is as large as its worker made it, about 1.6 kB without wheels and names.
    """

    def __init__(self, ttl_sec: float | None = None) -> None:
        """`ttl_sec` is how long the bucket keeps a record after its last write; nobody tells when it has passed."""
        self._ttl_sec = ttl_sec
        self._known: dict[str, _Known] = {}
        self._by_seen = Positions()
        self._by_written = Positions()
        self._calling = RollCall("workers")
        self.version = 0
        """Grows when a worker comes or goes, or announces something else; mere heartbeats leave it alone."""

    def __len__(self) -> int:
        return len(self._known)

    # -- what the feed says --------------------------------------------------------------------------------------------

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self._calling.behind

    def lose(self, why: str, at: float) -> None:
        """Nothing more is heard from now on; what is here stays."""
        self._calling.lose(why, at)

    def begin_load(self) -> None:
        """From now on all that is stored is told."""
        self._calling.begin(self._known)

    def end_load(self) -> bool:
        """All has been told: what was not is gone. Whether anything was."""
        gone = self._calling.end()
        for worker_id in gone:
            self._go(worker_id)
        return bool(gone)

    def put(self, record: WorkerRecord, revision: int) -> bool:
        """This is stored; whether it is news. Older revisions are ignored, save when all is told anew."""
        if not self._is_news(record.worker_id, revision):
            return False
        before = self._known.get(record.worker_id)
        self._drop(record.worker_id)
        seen_at = instant(record.last_seen_at) or 0.0
        known = _Known(record, revision, seen_at, max(seen_at, instant(record.updated_at) or 0.0))
        self.version += before is None or not _is_heartbeat(before, known)
        self._known[record.worker_id] = known
        self._by_seen.add((known.seen_at, record.worker_id))
        self._by_written.add((known.written_at, record.worker_id))
        return True

    def remove(self, worker_id: str, revision: int) -> bool:
        """It was removed; whether it was known, and has not been written again since."""
        return self._is_news(worker_id, revision) and self._go(worker_id)

    # -- what is asked -------------------------------------------------------------------------------------------------

    def get(self, worker_id: str) -> WorkerRecord | None:
        """The record as it is stored; effective_state says what to show of it."""
        known = self._known.get(worker_id)
        return None if known is None else known.record

    def query(
        self,
        *,
        now: float,
        disconnect_timeout_sec: float,
        scope: str = ACTIVE,
        state: WorkerState | None = None,
        include_hidden: bool = False,
        limit: int = 100,
    ) -> tuple[WorkerRecord, ...]:
        """Those of the scope that are in this state at `now`, the newest `last_seen_at` first, as they are stored."""
        self.expire(now)
        found: list[WorkerRecord] = []
        for seen_at, worker_id in self._by_seen.descending():
            if len(found) == limit or (scope == ACTIVE and now - seen_at > disconnect_timeout_sec):
                break
            record = self._known[worker_id].record
            shown = effective_state(record, now, disconnect_timeout_sec)
            is_in_scope = scope != ACTIVE or shown in _ACTIVE_STATES
            if is_in_scope and (state is None or shown is state) and (include_hidden or not record.hidden):
                found.append(record)
        return tuple(found)

    def alive(self, now: float, disconnect_timeout_sec: float) -> int:
        """How many run or are idle, hidden ones included; costs O(those seen lately)."""
        count = 0
        for seen_at, worker_id in self._by_seen.descending():
            if now - seen_at > disconnect_timeout_sec:
                break
            count += self._known[worker_id].record.state in _ACTIVE_STATES
        return count

    def offers(self, now: float, disconnect_timeout_sec: float) -> dict[str, Offered]:
        """What those that run or are idle announce, by their tags; costs O(those seen lately)."""
        found: dict[str, Offered] = {}
        for seen_at, worker_id in self._by_seen.descending():
            if now - seen_at > disconnect_timeout_sec:
                break
            record = self._known[worker_id].record
            if record.state in _ACTIVE_STATES:
                for tag in record.tags:
                    found[tag] = found.get(tag, _EVERYBODY).joined(record.offer)
        return found

    def expire(self, now: float) -> None:
        """Forget those whose records have grown too old."""
        if self._ttl_sec is None:
            return
        while (oldest := self._by_written.first()) is not None and now - oldest[0] > self._ttl_sec:
            self._go(oldest[1])

    # -- inside --------------------------------------------------------------------------------------------------------

    def _is_news(self, worker_id: str, revision: int) -> bool:
        known = self._known.get(worker_id)
        # a bucket that was made anew or restored counts from the beginning again
        is_anew = self._calling.mention(worker_id)
        return known is None or revision > known.revision or (is_anew and revision != known.revision)

    def _go(self, worker_id: str) -> bool:
        is_gone = self._drop(worker_id)
        self.version += is_gone
        return is_gone

    def _drop(self, worker_id: str) -> bool:
        known = self._known.pop(worker_id, None)
        if known is None:
            return False
        self._by_seen.remove((known.seen_at, worker_id))
        self._by_written.remove((known.written_at, worker_id))
        return True


def _is_heartbeat(before: _Known, after: _Known) -> bool:
    """Whether nothing changed that matters to those who look for a worker."""
    was, now = before.record, after.record
    is_same = (was.tags, was.offer, was.state in _ACTIVE_STATES) == (now.tags, now.offer, now.state in _ACTIVE_STATES)
    return is_same and after.seen_at - before.seen_at <= _LONG_SEC
