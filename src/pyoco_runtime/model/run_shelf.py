"""The runs of one tenant, sorted under every filter that a list can have."""

from __future__ import annotations

from collections.abc import Iterator

from pyoco_runtime.model.positions import Position, Positions
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_summary import RunSummary

_Key = tuple[str | None, str | None, str | None, str | None]
"""Status, flow, tag, sha256; None is any. The status as plain text: an enum's hash is ten times as slow."""

_NONE: Positions = Positions()


class RunShelf:
    """One sorted set for each combination of status, flow and tag that occurs, and for sha256 alone and with a status.

    So a run is in eight sets, ten if it has a sha256, and every list is read off one of them, except that sha256
    together with a flow or a tag is looked for in the smaller of two: the runs of that sha256, and those of that flow
    and tag. Sets for these too would cost more memory than all others where each run has a file of its own.
    """

    __slots__ = ("_flows", "_sets")

    def __init__(self) -> None:
        self._sets: dict[_Key, Positions] = {}
        self._flows: dict[str, None] = {}
        """The flows that occur, in the order in which they came."""

    def __len__(self) -> int:
        return len(self._sets.get((None, None, None, None), _NONE))

    def add(self, run: RunSummary) -> None:
        """Put it in."""
        self._flows[run.flow_name] = None
        for key in _keys(run):
            found = self._sets.get(key)
            if found is None:
                found = self._sets[key] = Positions()
            found.add(run.position)

    def remove(self, run: RunSummary) -> None:
        """Take it out, exactly as it was put in."""
        for key in _keys(run):
            found = self._sets[key]
            if len(found) == 1:
                del self._sets[key]
            else:
                found.remove(run.position)
        if (None, run.flow_name, None, None) not in self._sets:
            del self._flows[run.flow_name]

    def candidates(self, wanted: RunFilter, below: Position | None) -> Iterator[Position]:
        """Those under `below` that the filter may match, the newest first; see the class for when it is not sure."""
        status = None if wanted.status is None else wanted.status.value
        found = self._sets.get((status, wanted.flow, wanted.tag, None), _NONE)
        if wanted.sha256 is not None:
            found = min(found, self._sets.get((status, None, None, wanted.sha256), _NONE), key=len)
        return found.descending(below)

    def oldest(self) -> Position | None:
        """The run that has been quiet for the longest time."""
        return self._sets.get((None, None, None, None), _NONE).first()

    def count(self, status: RunStatus, flow: str | None = None) -> int:
        """How many have this status, of this flow or of all."""
        return len(self._sets.get((status.value, flow, None, None), _NONE))

    def count_since(self, status: RunStatus, updated_from: float) -> int:
        """How many have this status and were updated at that moment or later."""
        return self._sets.get((status.value, None, None, None), _NONE).count_from((updated_from, ""))

    def flows(self) -> Iterator[str]:
        """The flows that occur."""
        return iter(self._flows)


def _keys(run: RunSummary) -> list[_Key]:
    status, flow, tag, sha256 = run.status.value, run.flow_name, run.tag, run.workflow_yaml_sha256
    keys: list[_Key] = [
        (None, None, None, None),
        (status, None, None, None),
        (None, flow, None, None),
        (status, flow, None, None),
    ]
    if tag is not None:
        keys += [(None, None, tag, None), (status, None, tag, None), (None, flow, tag, None), (status, flow, tag, None)]
    if sha256 is not None:
        keys += [(None, None, None, sha256), (status, None, None, sha256)]
    return keys
