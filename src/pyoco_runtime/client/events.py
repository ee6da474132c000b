"""What a watcher is told."""

from __future__ import annotations

from attrs import frozen

from pyoco_runtime.client.answers import Run, RunSummary
from pyoco_runtime.model.run import RunStatus

_TERMINAL = frozenset(each.value for each in RunStatus if each.is_terminal)


@frozen
class RunChanged:
    """The run as it is now."""

    run: Run
    ts: float
    event_id: str | None = None
    """Its place in the gateway's stream; the published gateway gives none."""

    @property
    def run_id(self) -> str:
        """Which run."""
        return self.run["run_id"]

    @property
    def status(self) -> str:
        """Where it is on its way."""
        return self.run["status"]

    @property
    def is_terminal(self) -> bool:
        """It never changes again."""
        return is_terminal(self.run)


@frozen
class Heartbeat:
    """Nothing has changed for a while, and the connection is well."""

    ts: float


@frozen
class Interrupted:
    """The connection is lost; another is tried in so many seconds."""

    problem: str
    again_in_sec: float


@frozen
class ListReady:
    """Every change from here on will be told: read the list now, if you want to have it complete."""

    revision: int
    behind: str | None
    ts: float


@frozen
class RunListed:
    """A run of the list is new or has changed."""

    run: RunSummary
    event_id: str | None = None


@frozen
class RunGone:
    """A run is in the list no more."""

    run_id: str
    event_id: str | None = None


@frozen
class ListDropped:
    """Changes were left out, for you were away or too slow: read the list anew."""

    reason: str


RunEvent = RunChanged | Heartbeat | Interrupted
ListEvent = ListReady | RunListed | RunGone | ListDropped | Heartbeat | Interrupted


def is_terminal(run: RunSummary) -> bool:
    """Whether the run has ended."""
    return run["status"] in _TERMINAL
