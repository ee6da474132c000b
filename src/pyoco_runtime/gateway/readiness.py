"""Whether a gateway can serve: the process can, and its indexes are as new as what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyoco_runtime.gateway.health_view import HealthView
from pyoco_runtime.model.roll_call import Behind


class Board(Protocol):
    """What an index is on."""

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is not."""


class Readiness:
    """Implements HealthView on that of the process."""

    def __init__(self, process: HealthView, boards: Mapping[str, Board]) -> None:
        """`boards` by the name of the actor that keeps each."""
        self._process = process
        self._boards = boards

    def missing(self) -> tuple[str, ...]:
        lacks = [(name, board.behind) for name, board in self._boards.items()]
        return (
            *self._process.missing(),
            *(f"{name} is behind: {behind.why}" for name, behind in lacks if behind is not None),
        )
