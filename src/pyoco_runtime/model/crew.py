"""The live workers of one tag, as a run that waits for one of them sees them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from pyoco_runtime.model.offer import Offered
from pyoco_runtime.model.worker import WorkerRecord, WorkerState


@frozen
class Crew:
    """What they can run together, and whether one of them could take a run now."""

    offered: Offered
    has_room: bool


def crew_of(tag: str, active: Iterable[WorkerRecord]) -> Crew | None:
    """Those of the active workers that have the tag; None if there are none."""
    members = [record for record in active if tag in record.tags]
    if not members:
        return None
    offered = Offered(frozenset(), frozenset())
    for record in members:
        offered = offered.joined(record.offer)
    return Crew(offered, any(map(_has_room, members)))


def _has_room(record: WorkerRecord) -> bool:
    """Workers of other makes do not tell how many runs they take at once: then it is one."""
    if record.state is WorkerState.IDLE:
        return True
    match record.extra:
        case {"concurrency": int(most), "current_run_ids": [*current]}:
            return len(current) < most
        case _:
            return False
