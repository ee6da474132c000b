"""The desk: what this process tells about its own tree, and what it does on request."""

from __future__ import annotations

import os
import socket
import time
from difflib import get_close_matches

from pyoco_runtime.core import ActorStatus, Phase, Supervisor
from pyoco_runtime.errors import NoSuchActor, NotRunning
from pyoco_runtime.model.house import ActorReport, CrashReport, ProcessReport
from pyoco_runtime.ports import Link

_WORKS = frozenset({Phase.RUNNING, Phase.DONE})


class Desk:
    """Implements ports.Desk and the gateway's HealthView over the running tree."""

    def __init__(self, process: str, role: str, version: str, link: Link) -> None:
        self.process = process
        self._role = role
        self._version = version
        self._link = link
        self._started_at = time.time()
        self._tree: Supervisor | None = None

    def attach(self, tree: Supervisor) -> None:
        """Take the tree that it speaks for."""
        self._tree = tree

    def report(self) -> ProcessReport:
        """The tree at this moment."""
        return ProcessReport(
            self.process,
            self._role,
            socket.gethostname(),
            os.getpid(),
            self._version,
            self._started_at,
            _report(self._supervisor().status()),
        )

    def resolve(self, actor: str) -> str:
        """The path of the actor with this path or this unique last part. Raises NoSuchActor."""
        known = [status.path for status in self._supervisor().status().walk()][1:]
        found = [path for path in known if path == actor or path.endswith(f"/{actor}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise NoSuchActor(f"{actor!r} is not unique; say one of: {', '.join(found)}")
        names = [path.rpartition("/")[2] for path in known]
        close = get_close_matches(actor, [*known, *names], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise NoSuchActor(f"{self.process} has no actor {actor!r}{hint} (it has: {', '.join(known)})")

    def restart(self, path: str) -> None:
        """Begin to restart the actor with this path. Raises NoSuchActor, NotRunning."""
        self._supervisor().request_restart(path)

    def missing(self) -> tuple[str, ...]:
        """What keeps this process from being ready, in plain words; empty when nothing does."""
        statuses = self._supervisor().status().walk()
        lacks = [f"actor {s.path} is {s.phase}" for s in statuses if s.phase not in _WORKS and not s.temporary]
        if not self._link.is_up:
            lacks.insert(0, f"nats: {self._link.problem}")
        return tuple(lacks)

    def _supervisor(self) -> Supervisor:
        if self._tree is None:
            raise NotRunning("the tree has not been started")
        return self._tree


def _report(status: ActorStatus) -> ActorReport:
    crash = status.last_crash
    return ActorReport(
        status.path,
        status.name,
        status.supervisor,
        str(status.phase),
        status.since,
        status.restarts,
        CrashReport(crash.type, crash.message, crash.where, crash.at) if crash else None,
        status.mailbox,
        tuple(_report(child) for child in status.children),
    )
