"""The dead letters of one tenant, sorted under every filter that a list can have."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field, frozen
from attrs.converters import optional

from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.positions import Position, Positions
from pyoco_runtime.model.run_summary import cut

_Key = tuple[str | None, str | None, str | None]
"""Reason, tag, flow; None is any. The reason as plain text: an enum's hash is ten times as slow."""

_ALL: _Key = (None, None, None)
_NONE = Positions()


@frozen(kw_only=True)
class LetterEntry:
    """A letter without its details: what lists and filters need. Texts are cut after 500 characters."""

    position: Position
    timestamp: float
    reason: Reason
    run_id: str | None
    flow_name: str | None
    tag: str | None
    tenant_id: str | None

    @property
    def seq(self) -> int:
        """Its place in the stream, which is its id."""
        return int(self.position[0])


@frozen(kw_only=True)
class LetterFilter:
    """All that is given must hold; None asks for nothing. Texts are compared as far as entries hold them."""

    reason: Reason | None = field(default=None, converter=optional(Reason))
    tag: str | None = field(default=None, converter=optional(cut))
    flow: str | None = field(default=None, converter=optional(cut))
    run_id: str | None = field(default=None, converter=optional(cut))
    tenant: str | None = None
    with_nobodys: bool = False
    """Beside those of the tenant, those of no tenant too."""

    def matches(self, entry: LetterEntry) -> bool:
        """Whether the list shows this letter."""
        return (
            (self.tenant is None or entry.tenant_id == self.tenant or (self.with_nobodys and entry.tenant_id is None))
            and (self.reason is None or entry.reason is self.reason)
            and (self.tag is None or entry.tag == self.tag)
            and (self.flow is None or entry.flow_name == self.flow)
            and (self.run_id is None or entry.run_id == self.run_id)
        )


class LetterShelf:
    """One sorted set for each combination of reason, tag and flow that occurs: a letter is in eight at most."""

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        self._sets: dict[_Key, Positions] = {}

    def __len__(self) -> int:
        return len(self._sets.get(_ALL, _NONE))

    def add(self, entry: LetterEntry) -> None:
        """Put it in."""
        for key in _keys(entry):
            found = self._sets.get(key)
            if found is None:
                found = self._sets[key] = Positions()
            found.add(entry.position)

    def remove(self, entry: LetterEntry) -> None:
        """Take it out, exactly as it was put in."""
        for key in _keys(entry):
            found = self._sets[key]
            if len(found) == 1:
                del self._sets[key]
            else:
                found.remove(entry.position)

    def descending(self, wanted: LetterFilter, below: Position | None) -> Iterator[Position]:
        """Those under `below` that the filter matches, the newest first; `run_id` and `tenant` are not looked at."""
        reason = None if wanted.reason is None else wanted.reason.value
        return self._sets.get((reason, wanted.tag, wanted.flow), _NONE).descending(below)

    def count(self, reason: Reason) -> int:
        """How many have this reason."""
        return len(self._sets.get((reason.value, None, None), _NONE))


def _keys(entry: LetterEntry) -> list[_Key]:
    keys: list[_Key] = [_ALL, (entry.reason.value, None, None)]
    if entry.tag is not None:
        keys += [(reason, entry.tag, None) for reason, _, _ in keys]
    if entry.flow_name is not None:
        keys += [(reason, tag, entry.flow_name) for reason, tag, _ in keys]
    return keys
