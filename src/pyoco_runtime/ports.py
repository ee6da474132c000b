"""What the actors need from the outside, as Protocols. jetstream/ and testing/ implement them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pyoco_runtime.model.house import ProcessReport


class LinkStatus(enum.Enum):
    """What the connection says about itself."""

    CONNECTED = "connected"
    LOST = "lost"
    """Down for now; it reconnects by itself."""
    CLOSED = "closed"
    """Down for good; a new one is needed."""


class Link(Protocol):
    """The one NATS connection, as everybody but its owner sees it. It outlives every life of the link actor."""

    @property
    def is_up(self) -> bool:
        """Connected, and all resources are there."""

    @property
    def problem(self) -> str:
        """Why it is not up, in words for the operator."""

    @property
    def epoch(self) -> int:
        """Counts connections: subscriptions made in one epoch are gone in the next."""

    async def wait_up(self) -> None:
        """Return as soon as it is up."""

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called when it goes up or down; call what is returned to end that."""


class LinkOwner(Protocol):
    """The same connection, as the link actor drives it."""

    async def connect(self) -> None:
        """Make one attempt to connect. Raises NatsUnavailable."""

    async def prepare(self) -> None:
        """Make the streams, buckets and the object store that are missing; change none. Raises NatsUnavailable."""

    async def next_status(self) -> LinkStatus:
        """Wait until the connection's status changes, and return it."""

    def declare_up(self) -> None:
        """Let everybody use it."""

    def declare_down(self, problem: str) -> None:
        """Let everybody fail fast with this reason."""

    async def close(self) -> None:
        """Close the connection, if there is one."""


class Desk(Protocol):
    """What the console shows and does: the tree of this process."""

    def report(self) -> ProcessReport:
        """The tree at this moment."""

    def resolve(self, actor: str) -> str:
        """The path of the actor with this path or this unique last part. Raises NoSuchActor."""

    def restart(self, path: str) -> None:
        """Begin to restart the actor with this path. Raises NoSuchActor, NotRunning."""


class ConsoleService(Protocol):
    """The console while it can be reached over NATS."""

    @property
    def epoch(self) -> int:
        """The link's epoch that it was opened in."""

    async def notify(self) -> None:
        """Tell whoever watches that the tree has changed. Raises NatsUnavailable."""


class ConsoleHost(Protocol):
    """Opens the console to the network."""

    def serving(self, desk: Desk) -> AbstractAsyncContextManager[ConsoleService]:
        """Answer requests for the desk while the block runs. Raises NatsUnavailable."""
