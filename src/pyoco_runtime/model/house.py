"""The supervision tree of a process as it travels over NATS, and its one form in bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeVar

import cattrs
from attrs import asdict, frozen


@frozen
class CrashReport:
    """The last crash of an actor."""

    type: str
    message: str
    where: str
    at: float


@frozen
class ActorReport:
    """One actor or supervisor at the moment of the report."""

    path: str
    name: str
    supervisor: bool
    state: str
    since: float
    restarts: int = 0
    last_crash: CrashReport | None = None
    mailbox: int | None = None
    children: tuple[ActorReport, ...] = ()

    def walk(self) -> Iterator[ActorReport]:
        """This one and all below it, in start order."""
        yield self
        for child in self.children:
            yield from child.walk()


@frozen
class ProcessReport:
    """One process of ours on this NATS."""

    process: str
    role: str
    host: str
    pid: int
    version: str
    started_at: float
    tree: ActorReport


@frozen
class RestartAnswer:
    """What a process says to the request to restart an actor: the path it restarts, or why it does not."""

    path: str | None = None
    problem: str | None = None


T = TypeVar("T")
_converter = cattrs.Converter(forbid_extra_keys=False)


def to_bytes(value: ProcessReport | RestartAnswer) -> bytes:
    """The JSON that travels."""
    return json.dumps(asdict(value), separators=(",", ":")).encode()


def report_from(data: bytes) -> ProcessReport:
    """Read a report; raises ValueError if it is none. Unknown fields are ignored."""
    return _read(data, ProcessReport)


def answer_from(data: bytes) -> RestartAnswer:
    """Read an answer; raises ValueError if it is none. Unknown fields are ignored."""
    return _read(data, RestartAnswer)


def _read(data: bytes, kind: type[T]) -> T:
    try:
        return _converter.structure(json.loads(data), kind)
    except (cattrs.BaseValidationError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error
