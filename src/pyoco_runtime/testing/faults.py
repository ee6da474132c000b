"""Faults: what goes wrong between a process and the server in memory, by script or by seeded chance."""

from __future__ import annotations

import enum
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Literal, assert_never

from attrs import frozen

Operation = Literal[
    "run_store.get",
    "run_store.create",
    "run_store.update",
    "run_store.remove",
    "run_store.watch",
    "run_store.watch_next",
    "queue.publish",
    "queue.pull",
    "queue.inspect",
    "take",
    "wait",
    "give_back",
    "settle",
    "in_progress",
    "registry.publish",
    "registry.get",
    "registry.hide",
    "registry.watch",
    "registry.watch_next",
    "dead_letters.publish",
    "dead_letters.get",
    "dead_letters.drop",
    "dead_letters.count",
    "dead_letters.watch",
    "dead_letters.watch_next",
    "gauge.read",
    "promises.claim",
    "promises.release",
    "wheels.list",
    "wheels.download",
    "wheels.watch",
    "wheels.watch_next",
    "wheels.chunk",
    "wheels.commit",
    "wheels.purge",
    "wheels.delete",
    "wheels.sweep",
    "wheel_history.append",
    "wheel_history.recent",
    "keys.get",
    "keys.create",
    "keys.revoke",
    "keys.list",
    "keys.watch",
    "keys.watch_next",
]
"""Everything that can go wrong by itself. `queue.pull` opens a puller; `*.watch_next` loses the whole watch."""


class Lost(enum.Enum):
    """One message is lost; the caller gets NatsUnavailable and cannot tell which of the two it was."""

    BEFORE = "before"
    """The request: nothing happened."""
    AFTER = "after"
    """The answer: it happened all the same."""


@frozen
class Slow:
    """The request or the answer takes that long; past the request time-out it counts as lost."""

    sec: float


Fault = Lost | Slow


@frozen
class Trip:
    """How one call fares: how long each way takes, and whether one of the two messages is lost."""

    going_sec: float = 0.0
    coming_sec: float = 0.0
    lost: Lost | None = None


class Faults:
    """Decides about every call. Without rates and scripts nothing goes wrong and nothing takes time."""

    def __init__(self, dice: random.Random | None = None, *, jitter_sec: float = 0.0, request_sec: float = 5.0) -> None:
        """`jitter_sec` is the most that each way takes when all is well; `request_sec` is the clients' time-out."""
        self._dice = dice or random.Random(0)
        self._jitter_sec = jitter_sec
        self._request_sec = request_sec
        self._scripts: dict[Operation, deque[Fault | None]] = {}
        self._rates: dict[Operation | None, list[tuple[Fault, float]]] = {}
        self._conflicts: Counter[str] = Counter()
        self._redeliver: Callable[[int], None] | None = None

    def next(self, operation: Operation, *faults: Fault | None) -> None:
        """Let the next calls of this kind fare so, one fault each; None is a call that goes well."""
        self._scripts.setdefault(operation, deque()).extend(faults)

    def rate(self, operation: Operation | None, fault: Fault, probability: float) -> None:
        """Let calls of this kind (None: of every kind) fare so now and then; a Slow lasts up to its seconds."""
        self._rates.setdefault(operation, []).append((fault, probability))

    def calm(self) -> None:
        """From now on nothing goes wrong any more: scripts, rates, jitter and conflicts are forgotten."""
        self._scripts.clear()
        self._rates.clear()
        self._conflicts.clear()
        self._jitter_sec = 0.0

    def conflict_next(self, run_id: str) -> None:
        """Let somebody else write the same snapshot again just before the next update or remove of this run."""
        self._conflicts[run_id] += 1

    def redeliver_now(self, seq: int) -> None:
        """Let the server think that the ack wait of this message has passed."""
        assert self._redeliver is not None, "these faults belong to no server yet"
        self._redeliver(seq)

    # -- for the server ------------------------------------------------------------------------------------------------

    def attach(self, redeliver: Callable[[int], None]) -> None:
        """Belong to a server from now on."""
        assert self._redeliver is None, "these faults belong to another server"
        self._redeliver = redeliver

    def take_conflict(self, run_id: str) -> bool:
        """Whether somebody else writes now."""
        if self._conflicts[run_id] == 0:
            return False
        self._conflicts[run_id] -= 1
        return True

    def draw(self, operation: Operation) -> Trip:
        """How the next call of this kind fares."""
        script = self._scripts.get(operation)
        fault = script.popleft() if script else self._by_chance(operation)
        match fault:
            case None:
                return Trip(self._jitter(), self._jitter())
            case Lost():
                return Trip(self._jitter(), self._jitter(), fault)
            case Slow(sec):
                return self._slow(sec)
            case _:
                assert_never(fault)

    def _by_chance(self, operation: Operation) -> Fault | None:
        for fault, probability in (*self._rates.get(operation, ()), *self._rates.get(None, ())):
            if self._dice.random() < probability:
                return Slow(fault.sec * self._dice.random()) if isinstance(fault, Slow) else fault
        return None

    def _slow(self, sec: float) -> Trip:
        within = min(sec, self._request_sec)
        late = sec > self._request_sec
        if self._dice.random() < 0.5:
            return Trip(within, 0.0, Lost.BEFORE if late else None)
        return Trip(0.0, within, Lost.AFTER if late else None)

    def _jitter(self) -> float:
        return self._dice.random() * self._jitter_sec if self._jitter_sec else 0.0
