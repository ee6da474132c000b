"""Making a snapshot fit under the size cap: the details of the oldest tasks go first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve

from pyoco_runtime.model.run import NOTHING, RunSnapshot, TaskRecord

ERROR_LIMIT = 2000  # characters of an error that stay when everything else is gone


def fit(snapshot: RunSnapshot, max_bytes: int, encode: Callable[[RunSnapshot], bytes]) -> tuple[bytes, bool]:
    """Encode it within `max_bytes`, and say whether that worked; what does not fit is as small as it can be."""
    data = encode(snapshot)
    if len(data) <= max_bytes:
        return data, True
    for smaller in _ever_smaller(snapshot):
        data = encode(smaller)
        if len(data) <= max_bytes:
            return data, True
    return data, False


def _ever_smaller(snapshot: RunSnapshot) -> Iterator[RunSnapshot]:
    order = sorted(snapshot.task_records, key=lambda name: snapshot.task_records[name].ended_at or float("inf"))
    snapshot = evolve(snapshot, task_records_truncated=True)
    records = dict(snapshot.task_records)
    for names in _doubling(order):
        for name in names:
            records[name] = _bare(records[name])
        yield evolve(snapshot, task_records=dict(records))
    for names in _doubling(order):
        for name in names:
            del records[name]
        yield evolve(snapshot, task_records=dict(records))
    error = snapshot.error[:ERROR_LIMIT] if snapshot.error else snapshot.error
    yield evolve(snapshot, task_records=NOTHING, params=NOTHING, extra=NOTHING, error=error)


def _doubling(order: list[str]) -> Iterator[list[str]]:
    """One, then two, then four more: encoding once per record would cost the square of their number."""
    begin, size = 0, 1
    while begin < len(order):
        yield order[begin : begin + size]
        begin, size = begin + size, size * 2


def _bare(record: TaskRecord) -> TaskRecord:
    return evolve(record, output=None, traceback=None, inputs=NOTHING, artifacts=NOTHING, stdout=None, stderr=None)
