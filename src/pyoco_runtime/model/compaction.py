"""Making a snapshot fit under the size cap: the details of the oldest tasks go first, then the graph."""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import evolve

from pyoco_runtime.model.run import NOTHING, RunSnapshot, TaskRecord

ERROR_LIMIT = 2000  # characters of an error that stay when everything else is gone

Encode = Callable[[RunSnapshot], bytes]


def fit(snapshot: RunSnapshot, max_bytes: float, encode: Encode, hard_limit: float = math.inf) -> tuple[bytes, bool]:
    """Encode it within `max_bytes`, and say whether that worked; what does not fit is as small as it can be.

    Over `hard_limit` nothing can be stored at all: then the tasks go too, because the run must still end.
    """
    data = encode(snapshot)
    if len(data) <= max_bytes:
        return data, True
    order = sorted(snapshot.task_records, key=lambda name: _end_of(snapshot.task_records[name]))
    for smaller in (_stripped, _undrawn, _dropped):
        found = _least(lambda count, smaller=smaller: encode(smaller(snapshot, order, count)), len(order), max_bytes)  # type: ignore[misc]  # mypy does not infer lambdas with defaults
        if found is not None:
            return found, True
    data = encode(_bones(snapshot))
    if len(data) > hard_limit:
        data = encode(evolve(_bones(snapshot), tasks=NOTHING, tags=()))
    return data, len(data) <= max_bytes


def _least(make: Callable[[int], bytes], most: int, max_bytes: float) -> bytes | None:
    """What `make` gives for the least count that fits; None if not even `most` does. By halving: encoding is dear."""
    best = make(most)
    if len(best) > max_bytes:
        return None
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        data = make(middle)
        if len(data) <= max_bytes:
            best, high = data, middle
        else:
            low = middle + 1
    return best


def _stripped(snapshot: RunSnapshot, order: list[str], count: int) -> RunSnapshot:
    """Without the details of the `count` oldest tasks."""
    bare = {name: _bare(snapshot.task_records[name]) for name in order[:count]}
    return evolve(snapshot, task_records={**snapshot.task_records, **bare}, task_records_truncated=True)


def _undrawn(snapshot: RunSnapshot, order: list[str], count: int) -> RunSnapshot:
    """The same without the graph: that a task has a record says more than how it hangs together with others."""
    return evolve(_stripped(snapshot, order, count), graph=None)


def _dropped(snapshot: RunSnapshot, order: list[str], count: int) -> RunSnapshot:
    """Without graph and details, and without the records of the `count` oldest tasks at all."""
    kept = {name: _bare(snapshot.task_records[name]) for name in order[count:]}
    return evolve(snapshot, task_records=kept, task_records_truncated=True, graph=None)


def _bones(snapshot: RunSnapshot) -> RunSnapshot:
    error = snapshot.error[:ERROR_LIMIT] if snapshot.error else snapshot.error
    return evolve(
        snapshot,
        task_records=NOTHING,
        task_records_truncated=True,
        params=NOTHING,
        extra=NOTHING,
        error=error,
        graph=None,
    )


def _end_of(record: TaskRecord) -> float:
    return math.inf if record.ended_at is None else record.ended_at


def _bare(record: TaskRecord) -> TaskRecord:
    return evolve(record, output=None, traceback=None, inputs=NOTHING, artifacts=NOTHING, stdout=None, stderr=None)
