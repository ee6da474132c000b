"""What a worker can run, by name."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from pyoco_runtime.model.submission import FLOW_NAME_LIMIT

COUNT_LIMIT = 500  # a worker writes its record every few seconds, and every gateway keeps it in memory
BYTES_LIMIT = 16_384


@frozen
class Offer:
    """The names that a worker announces, sorted; None where it cannot tell, and then anything may be there."""

    flows: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None


UNKNOWN = Offer()


@frozen
class Offered:
    """What the live workers of one tag announce together; None as soon as one of them cannot tell."""

    flows: frozenset[str] | None
    tasks: frozenset[str] | None

    def joined(self, offer: Offer) -> Offered:
        """With one more worker."""
        return Offered(_joined(self.flows, offer.flows), _joined(self.tasks, offer.tasks))


def announced(names: Iterable[str]) -> tuple[str, ...] | None:
    """The names as a record holds them; None if they are too many or too long, for half a list would mislead."""
    found = sorted({name for name in names if name})
    is_short = all(len(name) <= FLOW_NAME_LIMIT for name in found)
    is_small = len(found) <= COUNT_LIMIT and sum(len(name.encode()) for name in found) <= BYTES_LIMIT
    return tuple(found) if is_short and is_small else None


def _joined(known: frozenset[str] | None, more: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if known is None or more is None else known.union(more)
