"""The tree as data: what `actors` shows."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from pyoco_runtime.core.crash import Crash
from pyoco_runtime.core.plan import Phase


@frozen
class ActorStatus:
    """One actor or supervisor at this moment."""

    path: str
    name: str
    supervisor: bool
    phase: Phase
    since: float
    restarts: int = 0
    last_crash: Crash | None = None
    mailbox: int | None = None
    """Messages waiting in the channels that it reads; None if it reads none."""
    temporary: bool = False
    """It is never restarted: it comes and goes with its work, and its absence is no failure."""
    children: tuple[ActorStatus, ...] = ()

    def walk(self) -> Iterator[ActorStatus]:
        """This one and all below it, in start order."""
        yield self
        for child in self.children:
            yield from child.walk()
