"""What a table shows, and how it is made to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

Item = Mapping[str, Any]

GAP = 2
LEAST = 6  # below this, what is left of a text tells nothing: the column goes


def _nothing(item: Item) -> str:
    return ""


@frozen(kw_only=True)
class Column:
    """One column: for programs the raw value, for people what reads well."""

    name: str
    raw: Callable[[Item], str]
    shown: Callable[[Item], str] | None = None
    """For people; the raw value if there is none."""
    style: Callable[[Item], str] = _nothing
    weight: int = 1
    """How important it is: the lightest is cut first."""
    is_id: bool = False
    """It is never cut: half an id is none."""

    def for_people(self, item: Item) -> str:
        """The value as a person wants to see it."""
        return one_line((self.shown or self.raw)(item))


def field(name: str, **more: Any) -> Column:
    """The column of a field as it is; `-` where there is none."""
    return Column(name=name, raw=lambda item: str("-" if item.get(name) is None else item[name]), **more)


def fitted(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """The widths that fit into the room; 0 for a column that goes. Ids always keep theirs."""
    fit = list(widths)
    by_weight = sorted((at for at, column in enumerate(columns) if not column.is_id), key=lambda at: columns[at].weight)
    for at in by_weight:
        over = total(fit) - room
        if over <= 0:
            break
        # a stump tells nothing: the lightest goes before a heavier one is cut
        fit[at] = fit[at] - over if fit[at] - over >= max(LEAST, len(columns[at].name)) else 0
    return fit


def total(widths: Sequence[int]) -> int:
    """How wide a line is."""
    there = [width for width in widths if width]
    return sum(there) + GAP * max(0, len(there) - 1)


def one_line(text: str) -> str:
    """The text without what would break a line or steer a terminal: it comes from others."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
