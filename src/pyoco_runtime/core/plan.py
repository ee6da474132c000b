"""Which children to start and to stop next: a pure function over the phases of a supervisor's children."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from attrs import frozen


class Phase(enum.StrEnum):
    """Where a child is in its life."""

    DOWN = "down"
    """Has no task: not started yet, or stopped."""
    WAITING = "waiting"
    """Sleeps out the pause before a restart."""
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STUCK = "stuck"
    """Was cancelled and did not end within the kill time."""
    DONE = "done"
    """Ended and stays down."""


ALIVE = frozenset({Phase.WAITING, Phase.STARTING, Phase.RUNNING, Phase.STOPPING})
_UNSETTLED = frozenset({Phase.WAITING, Phase.STARTING, Phase.STOPPING})


@frozen
class Slot:
    """One child as the plan sees it."""

    phase: Phase
    due: bool = False
    """It is down and is to be started."""
    recycle: bool = False
    """It is up and is to be stopped, so that it can be started anew."""


@frozen
class Plan:
    """The indexes of the children to stop and to start now; the next phase change asks for the next plan."""

    stop: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    finished: bool = False
    """Everything is down that can be brought down; only while stopping."""


def plan_stop(slots: Sequence[Slot]) -> Plan:
    """While the supervisor stops: one at a time, the last started first."""
    for index in reversed(range(len(slots))):
        if slots[index].phase in ALIVE:
            return Plan(stop=() if slots[index].phase is Phase.STOPPING else (index,))
    return Plan(finished=True)


def plan_serve(slots: Sequence[Slot], *, ordered: bool) -> Plan:
    """While the supervisor serves: bring down what is to be recycled, then start what is due.

    `ordered` is how it starts up, and how one_for_all and rest_for_one always work: stop in reverse order, then start
    in order, one at a time. Otherwise children are independent of each other.
    """
    recycling = [i for i, slot in enumerate(slots) if slot.recycle and slot.phase in ALIVE]
    to_stop = tuple(i for i in recycling if slots[i].phase is not Phase.STOPPING)
    due = tuple(i for i, slot in enumerate(slots) if slot.due)
    if not ordered:
        return Plan(stop=to_stop, start=due)
    if recycling:
        return Plan(stop=(recycling[-1],) if recycling[-1] in to_stop else ())
    if due and not any(slot.phase in _UNSETTLED for slot in slots[: due[0]]):
        return Plan(start=due[:1])
    return Plan()
