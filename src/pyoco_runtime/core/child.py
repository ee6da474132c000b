"""A child as its supervisor keeps it: across all its lives."""

from __future__ import annotations

import anyio

from pyoco_runtime.core.crash import Crash
from pyoco_runtime.core.life import Life
from pyoco_runtime.core.plan import ALIVE, Phase, Slot
from pyoco_runtime.core.spec import ActorSpec, ChildSpec, Restart, SupervisorSpec
from pyoco_runtime.core.status import ActorStatus


class Child:
    """The record of one child; only its supervisor changes it."""

    __slots__ = (
        "delay_sec",
        "dismissed",
        "due",
        "last_crash",
        "life",
        "lives",
        "path",
        "phase",
        "ready_at",
        "recycle",
        "settled",
        "since",
        "spec",
        "streak",
    )

    def __init__(self, spec: ChildSpec, path: str, now: float) -> None:
        self.spec = spec
        self.path = path
        self.phase = Phase.DOWN
        self.since = now
        self.due = False
        self.recycle = False
        self.dismissed = False
        self.delay_sec = 0.0
        self.streak = 0
        self.lives = 0
        self.ready_at: float | None = None
        self.life: Life | None = None
        self.last_crash: Crash | None = None
        self.settled = anyio.Event()

    @property
    def slot(self) -> Slot:
        """What the plan needs to know."""
        return Slot(self.phase, self.due, self.recycle)

    @property
    def alive(self) -> bool:
        """It has a task that can still end."""
        return self.phase in ALIVE

    def enter(self, phase: Phase, now: float) -> None:
        """Change the phase; wakes whoever waits for the child to be up or over."""
        self.phase = phase
        self.since = now
        if phase in (Phase.RUNNING, Phase.DONE, Phase.STUCK):
            self.settled.set()
        elif self.settled.is_set():
            self.settled = anyio.Event()

    def status(self, below: tuple[ActorStatus, ...]) -> ActorStatus:
        """This child as data."""
        mailboxes = self.spec.mailboxes if isinstance(self.spec, ActorSpec) else ()
        return ActorStatus(
            path=self.path,
            name=self.spec.name,
            supervisor=isinstance(self.spec, SupervisorSpec),
            phase=self.phase,
            since=self.since,
            restarts=max(0, self.lives - 1),
            last_crash=self.last_crash,
            mailbox=sum(box.depth for box in mailboxes) if mailboxes else None,
            temporary=self.spec.restart is Restart.TEMPORARY,
            children=below,
        )
