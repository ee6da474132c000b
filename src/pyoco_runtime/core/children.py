"""The handle through which actors start children of a dynamic supervisor. It outlives the supervisor's lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyoco_runtime.errors import NotRunning

if TYPE_CHECKING:
    from pyoco_runtime.core.spec import ActorSpec


class Parent(Protocol):
    """A supervisor, as the handle sees it."""

    def start_child(self, spec: ActorSpec) -> None:
        """Start one more child."""


class Children:
    """Start children by the thousand; raises NotRunning while the supervisor behind it is down."""

    def __init__(self) -> None:
        self._parent: Parent | None = None

    def start(self, spec: ActorSpec) -> None:
        """Start one more child now, without waiting until it is ready. Raises NotRunning, DuplicateChild."""
        if self._parent is None:
            raise NotRunning("the supervisor of this child is down; try again when it is back")
        self._parent.start_child(spec)

    def bind(self, parent: Parent) -> None:
        """For the supervisor, when its life begins."""
        self._parent = parent

    def unbind(self, parent: Parent) -> None:
        """For the supervisor, when it stops taking children; a newer life's binding stays."""
        if self._parent is parent:
            self._parent = None
