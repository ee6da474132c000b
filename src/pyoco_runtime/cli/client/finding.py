"""What the doctor found out about one thing."""

from __future__ import annotations

import enum

from attrs import frozen


class Level(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@frozen
class Finding:
    """One line of the doctor's: what was looked at, how it is, and what to do about it."""

    level: Level
    subject: str
    number: int
    """Of the message that says how it is."""
    values: dict[str, object]
    do: int | None = None
    """The number of the message that says what to do."""


def ok(subject: str, number: int, **values: object) -> Finding:
    """As it should be."""
    return Finding(Level.OK, subject, number, values)


def warning(subject: str, number: int, do: int | None = None, **values: object) -> Finding:
    """It works, but look at it."""
    return Finding(Level.WARNING, subject, number, values, do)


def problem(subject: str, number: int, do: int | None = None, **values: object) -> Finding:
    """It does not work."""
    return Finding(Level.PROBLEM, subject, number, values, do)
