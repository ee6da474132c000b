"""What a supervisor is to run, as plain values. They are checked whole before anything starts."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from pyoco_runtime.core.actor import Actor
from pyoco_runtime.core.channel import Channel
from pyoco_runtime.core.children import Children
from pyoco_runtime.errors import InvalidSpec

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


class Strategy(enum.StrEnum):
    """Who is restarted when one child fails."""

    ONE_FOR_ONE = "one_for_one"
    """The one that failed."""
    ONE_FOR_ALL = "one_for_all"
    """All of them."""
    REST_FOR_ONE = "rest_for_one"
    """The one that failed and those started after it."""


class Restart(enum.StrEnum):
    """When a child that ended is started again."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """After a crash, not after a normal end."""
    TEMPORARY = "temporary"
    """Never."""


@frozen
class Intensity:
    """More than `max_restarts` restarts within `within_sec` seconds and the supervisor gives up."""

    max_restarts: int = 10
    within_sec: float = 60.0


@frozen
class Backoff:
    """The pause before a restart: `initial_sec`, times `factor` for every crash in a row, up to `max_sec`.

    `jitter` spreads it by that share to both sides, so that many processes do not come back in step.
    """

    initial_sec: float = 0.1
    factor: float = 2.0
    max_sec: float = 5.0
    jitter: float = 0.2


@frozen
class ActorSpec:
    """One actor: how to make it, and what to do when it ends."""

    name: str
    start: Callable[[], Actor]
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = Backoff()
    start_timeout_sec: float = 30.0
    shutdown_sec: float = 5.0
    """How long it may drain after it was asked to stop; 0 cancels it at once."""
    mailboxes: tuple[Channel[Any], ...] = ()
    """The channels that it reads. They stay open while it is down."""


@frozen
class SupervisorSpec:
    """A supervisor and, in start order, its children."""

    name: str
    children: tuple[ActorSpec | SupervisorSpec, ...] = ()
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: Intensity = Intensity()
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = Backoff()
    kill_sec: float = 5.0
    """How long a cancelled child may take to end before it is reported as stuck."""
    dynamic: Children | None = field(default=None, eq=False)
    """The handle through which others start children here while it runs."""


ChildSpec = ActorSpec | SupervisorSpec


def check(spec: SupervisorSpec) -> None:
    """Raise InvalidSpec unless the whole tree under `spec` can be started."""
    _check_supervisor(spec, spec.name, frozenset())


def _check_supervisor(spec: SupervisorSpec, path: str, above: frozenset[int]) -> None:
    _check_name(spec.name, path)
    if id(spec) in above:
        raise InvalidSpec(f"{path}: a supervisor is its own descendant")
    _check_policy(spec, path)
    _at_least_zero(path, kill_sec=spec.kill_sec)
    if spec.dynamic is not None and spec.strategy is not Strategy.ONE_FOR_ONE:
        raise InvalidSpec(f"{path}: dynamic children need the strategy one_for_one, not {spec.strategy}")
    seen: set[str] = set()
    for child in spec.children:
        if child.name in seen:
            raise InvalidSpec(f"{path}: two children are called {child.name!r}")
        seen.add(child.name)
        check_child(child, f"{path}/{child.name}", above | {id(spec)})


def check_child(child: ChildSpec, path: str, above: frozenset[int] = frozenset()) -> None:
    """Raise InvalidSpec unless this child, and all below it, can be started."""
    if isinstance(child, SupervisorSpec):
        _check_supervisor(child, path, above)
        return
    _check_name(child.name, path)
    _check_backoff(child.backoff, path)
    _at_least_zero(path, shutdown_sec=child.shutdown_sec)
    if not child.start_timeout_sec > 0:
        raise InvalidSpec(f"{path}: start_timeout_sec must be more than 0, not {child.start_timeout_sec}")


def _check_name(name: str, path: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidSpec(f"{path}: the name {name!r} must be letters, digits and _ . : - only")


def _check_policy(spec: SupervisorSpec, path: str) -> None:
    _check_backoff(spec.backoff, path)
    _at_least_zero(path, max_restarts=spec.intensity.max_restarts)
    if not spec.intensity.within_sec > 0:
        raise InvalidSpec(f"{path}: within_sec must be more than 0, not {spec.intensity.within_sec}")


def _check_backoff(backoff: Backoff, path: str) -> None:
    _at_least_zero(path, initial_sec=backoff.initial_sec, max_sec=backoff.max_sec)
    if not 1 <= backoff.factor < math.inf:
        raise InvalidSpec(f"{path}: backoff factor must be 1 or more, not {backoff.factor}")
    if not 0 <= backoff.jitter <= 1:
        raise InvalidSpec(f"{path}: backoff jitter must be between 0 and 1, not {backoff.jitter}")


def _at_least_zero(path: str, **values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise InvalidSpec(f"{path}: {name} must be 0 or more, not {value}")
