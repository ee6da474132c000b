"""Every start, exit, restart and escalation in a tree is a value on one feed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import frozen

from pyoco_runtime.core.crash import Crash

_log = logging.getLogger(__name__)


@frozen
class Started:
    """A life began; the actor is not ready yet."""

    path: str
    at: float
    life: int
    """1 for the first life of this child, 2 after its first restart, ..."""


@frozen
class Ready:
    """The actor serves."""

    path: str
    at: float
    life: int


@frozen
class Exited:
    """A life ended: normally, by a crash, or because the supervisor wanted it to."""

    path: str
    at: float
    life: int
    wanted: bool
    """The supervisor had asked for it."""
    crash: Crash | None = None
    error: BaseException | None = None
    """The error itself, for reports with a traceback."""


@frozen
class Restarting:
    """A child will be started again after a pause."""

    path: str
    at: float
    delay_sec: float
    because: str
    """The path of the child whose end is the reason; its own, unless the strategy restarts several."""


@frozen
class Escalated:
    """A supervisor gave up."""

    path: str
    at: float
    reason: str
    child: str


@frozen
class Stuck:
    """A child was cancelled and will not die; the supervisor goes on without it."""

    path: str
    at: float
    after_sec: float


@frozen
class Stopped:
    """A supervisor has brought its children down; `stuck` names those that would not die, at any depth."""

    path: str
    at: float
    stuck: tuple[str, ...] = ()


Event = Started | Ready | Exited | Restarting | Escalated | Stuck | Stopped
Listener = Callable[[Event], None]


class Feed:
    """The one feed of a tree. Listeners are called at once, in the order in which they came, and must not block."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called for every event; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: Event) -> None:
        """For supervisors: tell everybody. A listener that raises is reported and harms nobody else."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a broken listener must not bring a supervisor down
                _log.exception("an event listener failed", extra={"err_id": "ERR-PYOCO-0013"})
