"""What follows when a child ends: a pure decision over values, apart from the mechanics."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import assert_never

from attrs import frozen

from pyoco_runtime.core.spec import Backoff, Intensity, Restart, Strategy


class End(enum.Enum):
    """How a life ended by itself."""

    NORMAL = "normal"
    CRASHED = "crashed"


@frozen
class Leave:
    """The child stays down; its siblings go on."""


@frozen
class RestartAfter:
    """The child is started again after a pause."""

    delay_sec: float
    streak: int
    """How many crashes in a row this makes; the next pause depends on it."""
    history: tuple[float, ...]
    """The supervisor's restarts within its window, this one included."""


@frozen
class Escalate:
    """The supervisor gives up and fails itself."""

    restarts: int
    within_sec: float


Decision = Leave | RestartAfter | Escalate


def decide(
    *,
    restart: Restart,
    end: End,
    lived_sec: float,
    streak: int,
    history: Sequence[float],
    intensity: Intensity,
    backoff: Backoff,
    now: float,
    dice: float,
) -> Decision:
    """Decide what follows the end of one child.

    `streak` counts the crashes in a row before this one, `history` holds the times of the supervisor's restarts and
    `dice` is a random number in [0, 1) for the jitter.
    """
    if not _wants_restart(restart, end):
        return Leave()
    recent = (*(at for at in history if now - at <= intensity.within_sec), now)
    if len(recent) > intensity.max_restarts:
        return Escalate(len(recent), intensity.within_sec)
    # a life as long as the window was a healthy one: the next pause is short again
    streak = 0 if lived_sec > intensity.within_sec else streak
    return RestartAfter(pause(backoff, streak, dice), streak + 1, recent)


def pause(backoff: Backoff, streak: int, dice: float) -> float:
    """The pause before a restart, in seconds, after `streak` earlier crashes in a row."""
    # past 64 doublings every pause is at its maximum, and the power would overflow
    plain = min(backoff.max_sec, backoff.initial_sec * backoff.factor ** min(streak, 64))
    return plain * (1 + backoff.jitter * (2 * dice - 1))


def affected(strategy: Strategy, failed: int, count: int) -> range:
    """The indexes, in start order, of the children that a failure of `failed` restarts, itself included."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return range(failed, failed + 1)
        case Strategy.ONE_FOR_ALL:
            return range(count)
        case Strategy.REST_FOR_ONE:
            return range(failed, count)
        case _:
            assert_never(strategy)


def _wants_restart(restart: Restart, end: End) -> bool:
    match restart:
        case Restart.PERMANENT:
            return True
        case Restart.TRANSIENT:
            return end is End.CRASHED
        case Restart.TEMPORARY:
            return False
        case _:
            assert_never(restart)
