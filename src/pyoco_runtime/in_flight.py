"""The runs that a worker has in its hands: where ticker, heartbeat and cancel-watcher find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import frozen

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.ports import Delivery


class Seat(Protocol):
    """A run in our hands, as others see it. Every call returns at once, and asking twice is asking once."""

    @property
    def run_id(self) -> str:
        """Its id."""

    @property
    def delivery(self) -> Delivery:
        """What keeps it ours."""

    @property
    def since(self) -> float:
        """When it came, as a timestamp."""

    def look(self) -> None:
        """Somebody may have written to its snapshot: read it."""

    def beat(self) -> None:
        """Write a sign of life into its snapshot."""


@frozen
class LastRun:
    """The run that ended last."""

    run_id: str
    status: RunStatus
    finished_at: float


class InFlight:
    """Belongs to the tree, so that each actor that reads it can be restarted alone."""

    def __init__(self) -> None:
        self.last: LastRun | None = None
        self.last_started_at: float | None = None
        self._seats: dict[int, Seat] = {}
        self._listeners: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[Seat]:
        return iter(tuple(self._seats.values()))

    def __len__(self) -> int:
        return len(self._seats)

    def __contains__(self, seat: Seat) -> bool:
        return id(seat) in self._seats

    def add(self, seat: Seat) -> None:
        """It is ours from now on."""
        self._seats[id(seat)] = seat
        self.last_started_at = seat.since
        self._tell()

    def remove(self, seat: Seat) -> None:
        """It is not ours any more; saying it again changes nothing."""
        if self._seats.pop(id(seat), None) is not None:
            self._tell()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called when a run comes or goes; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()
