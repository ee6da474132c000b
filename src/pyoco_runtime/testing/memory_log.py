"""What happened at the server in memory, in order, for tests that check laws over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from attrs import frozen

from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.settlement import Settlement

SOMEBODY = "somebody"
"""Who did it when it was no process of the test."""


@frozen(kw_only=True)
class SnapshotStored:
    """A snapshot was written, or refused."""

    at: float
    by: str
    run_id: str
    over: int
    """The revision that was there; 0 is none."""
    expected: int | None
    """The revision that the writer named; None is a blind write of somebody else."""
    revision: int
    """The new one; 0 is a refusal."""
    snapshot: RunSnapshot | None
    """As the server holds it; None if it cannot be read."""


@frozen(kw_only=True)
class SnapshotRemoved:
    """A snapshot was deleted."""

    at: float
    by: str
    run_id: str
    over: int
    expected: int
    revision: int
    """The new one; 0 is a refusal."""


@frozen(kw_only=True)
class JobPublished:
    """A message reached the work queue, or was recognised as a copy."""

    at: float
    by: str
    seq: int
    tag: str
    run_id: str | None
    is_copy: bool


@frozen(kw_only=True)
class JobDelivered:
    """The server sent a message to a process; whether it arrived is another matter."""

    at: float
    to: str
    seq: int
    delivery: int


@frozen(kw_only=True)
class JobSettled:
    """The server took a settlement."""

    at: float
    by: str
    seq: int
    delivery: int
    settlement: Settlement
    run_id: str | None
    """None for a message that is no job."""
    is_late: bool
    """A newer delivery was out, or the message was gone: the server takes it all the same."""


@frozen(kw_only=True)
class JobDiscarded:
    """A message was taken off the queue from outside."""

    at: float
    by: str
    seq: int


@frozen(kw_only=True)
class LetterStored:
    """A dead letter reached its stream."""

    at: float
    by: str
    letter: DeadLetter


Fact = SnapshotStored | SnapshotRemoved | JobPublished | JobDelivered | JobSettled | JobDiscarded | LetterStored
F = TypeVar("F", bound=Fact)


class MemoryLog:
    """The facts in order."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def add(self, fact: Fact) -> None:
        """Write one down."""
        self.facts.append(fact)

    def of(self, kind: type[F]) -> Iterator[F]:
        """Those of one kind, in order."""
        return (fact for fact in self.facts if isinstance(fact, kind))

    def snapshots(self, run_id: str) -> list[RunSnapshot | None]:
        """All versions of one run that were stored, in order."""
        return [fact.snapshot for fact in self.of(SnapshotStored) if fact.run_id == run_id and fact.revision]

    def settlements(self, seq: int) -> list[Settlement]:
        """All that was said about one message, in order."""
        return [fact.settlement for fact in self.of(JobSettled) if fact.seq == seq]

    def letters(self) -> list[DeadLetter]:
        """All dead letters, in order."""
        return [fact.letter for fact in self.of(LetterStored)]
