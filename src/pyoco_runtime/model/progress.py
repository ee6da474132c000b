"""What a flow reports while it is executed, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pyoco_runtime.model.run import NOTHING, TaskStatus

Graph = Mapping[str, Any]
"""Nodes and edges as plain JSON. Only who made it and who draws it look inside."""


@frozen
class FlowStarted:
    """The flow was found and begins; these are its tasks."""

    tasks: tuple[str, ...]
    graph: Graph | None = None
    """How they hang together; None if nobody can tell."""


@frozen
class TaskStarted:
    """A task begins, perhaps not for the first time."""

    task: str
    at: float


@frozen
class TaskLogged:
    """A task has printed."""

    task: str
    stream: str
    """stdout or stderr."""
    text: str


@frozen
class TaskEnded:
    """A task is over; all values are plain JSON."""

    task: str
    status: TaskStatus
    started_at: float | None
    ended_at: float | None
    duration_ms: float | None = None
    error: str | None = None
    traceback: str | None = None
    inputs: Mapping[str, Any] = NOTHING
    output: Any = None
    artifacts: Mapping[str, Any] = NOTHING
    truncated: bool = False
    """A value was too large to be kept."""


@frozen
class Completed:
    """The flow reached its end."""


@frozen
class Raised:
    """The flow raised, or its process died."""

    error: str
    traceback: str | None = None


@frozen
class FlowNotFound:
    """This worker does not have the flow."""

    error: str


@frozen
class Stopped:
    """The flow ended early because it was asked to."""


@frozen
class Killed:
    """The flow was ended by force."""


Ending = Completed | Raised | FlowNotFound | Stopped | Killed


@frozen
class FlowEnded:
    """Nothing more will come."""

    ending: Ending
    at: float


Progress = FlowStarted | TaskStarted | TaskLogged | TaskEnded | FlowEnded
