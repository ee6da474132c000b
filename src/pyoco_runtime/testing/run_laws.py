"""The laws about runs, checked over what happened at a server in memory."""

from __future__ import annotations

from collections.abc import Iterator

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.settlement import Ack
from pyoco_runtime.testing.memory_log import SOMEBODY, JobSettled, MemoryLog, SnapshotRemoved, SnapshotStored


def broken_laws(log: MemoryLog) -> list[str]:
    """Sentences about what should never have happened; empty when all is well.

    A terminal snapshot never changes; an ack comes only after the terminal snapshot is stored (or the run is not
    there at all); attempts never go backwards in a snapshot; nobody but `somebody` writes blindly.
    """
    return list(_Reading().all(log))


class _Reading:
    """The snapshots as they were after each fact."""

    def __init__(self) -> None:
        self._runs: dict[str, RunSnapshot] = {}

    def all(self, log: MemoryLog) -> Iterator[str]:
        for fact in log.facts:
            match fact:
                case SnapshotStored(revision=revision) if revision:
                    yield from self._stored(fact)
                case SnapshotRemoved(revision=revision) if revision:
                    self._runs.pop(fact.run_id, None)
                case JobSettled(settlement=Ack()):
                    yield from self._acked(fact)
                case _:
                    pass

    def _stored(self, fact: SnapshotStored) -> Iterator[str]:
        old, new = self._runs.get(fact.run_id), fact.snapshot
        who = f"{fact.by} at {fact.at:.3f}: run {fact.run_id}"
        if fact.expected is None and fact.by != SOMEBODY:
            yield f"{who} was written blindly"
        if old is not None and old.status.is_terminal and new != old:
            yield f"{who} was {old.status} and changed"
        if old is not None and new is not None and _newest(new) < _newest(old):
            yield f"{who} went back from attempt {old.attempt} to {new.attempt}"
        if new is not None:
            self._runs[fact.run_id] = new

    def _acked(self, fact: JobSettled) -> Iterator[str]:
        run = self._runs.get(fact.run_id) if fact.run_id else None
        if run is not None and not run.status.is_terminal:
            yield f"{fact.by} at {fact.at:.3f}: run {fact.run_id} was acked while {run.status}"


def _newest(snapshot: RunSnapshot) -> Attempt:
    return snapshot.attempt or Attempt(0, 0)
