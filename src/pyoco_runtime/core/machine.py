"""The heart of a supervisor: a synchronous state machine over its children.

Lives report (started, ready, stuck, ended), the record of the child changes, and `_advance` carries out the next plan.
Nothing in here awaits, so there is no moment at which it is half-way.

    booting --all up--> serving --asked, escalated or cancelled--> stopping --all down--> down
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import assert_never

import anyio
from anyio.abc import TaskGroup
from attrs import field, frozen

from pyoco_runtime.core import events
from pyoco_runtime.core.actor import Actor
from pyoco_runtime.core.child import Child
from pyoco_runtime.core.crash import describe
from pyoco_runtime.core.life import Ending, Exit, Life, Times
from pyoco_runtime.core.plan import Phase, plan_serve, plan_stop
from pyoco_runtime.core.restart import Decision, End, Escalate, Leave, RestartAfter, affected, decide
from pyoco_runtime.core.spec import ActorSpec, ChildSpec, Restart, Strategy, SupervisorSpec, check_child
from pyoco_runtime.errors import ActorError, ChildStuck, DuplicateChild, NotRunning, RestartIntensityExceeded


@frozen
class World:
    """What all supervisors of one tree share."""

    feed: events.Feed = field(factory=events.Feed)
    clock: Callable[[], float] = time.time
    """Gives timestamps; durations come from anyio's clock."""
    dice: Callable[[], float] = field(factory=lambda: random.Random().random)
    """Gives the jitter; seeded in simulations."""


class Machine:
    """The children of one supervisor and what happens to them."""

    def __init__(
        self,
        spec: SupervisorSpec,
        path: str,
        world: World,
        starter: Callable[[ChildSpec, Report], Callable[[], Actor]],
        parent: Report | None = None,
    ) -> None:
        self.spec = spec
        self.path = path
        self.world = world
        self.since = world.clock()
        self.failure: ActorError | None = None
        self.up = anyio.Event()
        self.down = anyio.Event()
        self._starter = starter
        self._parent = parent
        self._tasks: TaskGroup | None = None
        self._children = [Child(c, f"{path}/{c.name}", self.since) for c in spec.children]
        self._dynamic: dict[str, Child] = {}
        self._stuck: tuple[str, ...] = ()
        self._history: tuple[float, ...] = ()
        self._pause_sec = 0.0
        self._stopping = False
        self._now = False

    # -- what the supervisor asks for ----------------------------------------------------------------------------------

    def start(self, tasks: TaskGroup) -> None:
        """Begin to start the children; `up` is set when all of them are."""
        self._tasks = tasks
        if self.spec.dynamic is not None:
            self.spec.dynamic.bind(self)
        for child in self._children:
            child.due = True
        self._advance()

    def stop(self, *, now: bool = False) -> None:
        """Begin to stop everything, `now` by cancelling instead of asking; `down` is set when it is done."""
        self._stopping = True
        hurry = now and not self._now
        self._now = self._now or now
        if hurry:
            for child in self.children():
                if child.phase is Phase.STOPPING:
                    self._end(child)
        self._advance()

    def start_child(self, spec: ActorSpec) -> None:
        """Start one more child, without waiting until it is ready. Raises NotRunning, DuplicateChild."""
        if self._stopping or self._tasks is None:
            raise NotRunning(f"{self.path} is down or stopping and takes no new children")
        if spec.name in self._dynamic or any(c.spec.name == spec.name for c in self._children):
            raise DuplicateChild(f"{self.path} has a child {spec.name!r} already")
        path = f"{self.path}/{spec.name}"
        check_child(spec, path)
        child = self._dynamic[spec.name] = Child(spec, path, self.world.clock())
        self._begin(child)

    def recycle(self, child: Child) -> None:
        """Begin to stop and start this one child again. Raises NotRunning."""
        if self._stopping or self._tasks is None:
            raise NotRunning(f"{self.path} is down or stopping and restarts nothing")
        if child.alive:
            child.recycle = True
            if child.spec.name in self._dynamic:
                self._end(child)
        else:
            child.enter(Phase.DOWN, self.world.clock())
            child.due = True
        self._advance()

    def children(self) -> Iterator[Child]:
        """All children in start order."""
        yield from self._children
        yield from self._dynamic.values()

    @property
    def phase(self) -> Phase:
        """The supervisor's own phase."""
        if self.down.is_set():
            return Phase.STUCK if self._stuck else Phase.DONE
        if self._stopping:
            return Phase.STOPPING
        return Phase.RUNNING if self.up.is_set() else Phase.STARTING

    # -- what lives report ---------------------------------------------------------------------------------------------

    def child_started(self, child: Child) -> None:
        child.lives += 1
        if child.phase is Phase.WAITING:
            child.enter(Phase.STARTING, self.world.clock())
        self._publish(events.Started(child.path, self.world.clock(), child.lives))

    def child_ready(self, child: Child) -> None:
        child.ready_at = anyio.current_time()
        if child.phase is Phase.STARTING:
            child.enter(Phase.RUNNING, self.world.clock())
        self._publish(events.Ready(child.path, self.world.clock(), child.lives))
        self._advance()

    def child_stuck(self, child: Child, below: tuple[str, ...]) -> None:
        child.enter(Phase.STUCK, self.world.clock())
        self._dynamic.pop(child.spec.name, None)
        self._stuck += (child.path, *below)
        self._publish(events.Stuck(child.path, self.world.clock(), self.spec.kill_sec))
        if not self._stopping:
            self._give_up(child, ChildStuck(f"{child.path} {_why_stuck(child)}; it cannot be restarted"))
        self._advance()

    def child_ended(self, child: Child, exit: Exit) -> None:
        now = self.world.clock()
        phase = child.phase
        life, child.life = child.life, None
        crash = describe(exit.error, now) if exit.error is not None else None
        child.last_crash = crash or child.last_crash
        if phase is not Phase.STUCK:
            child.enter(Phase.DOWN, now)
        if life is not None and life.is_started:  # a life that was stopped in its pause never was one
            wanted = phase in (Phase.STOPPING, Phase.STUCK)
            self._publish(events.Exited(child.path, now, child.lives, wanted, crash, exit.error))
        if phase is not Phase.STUCK:
            self._after(child, phase, exit)
            self._advance()

    def _after(self, child: Child, phase: Phase, exit: Exit) -> None:
        if self._stopping or (phase is Phase.STOPPING and not child.recycle):
            self._dynamic.pop(child.spec.name, None)
        elif child.recycle:
            self._due_again(child)
        else:
            self._follow(child, exit)

    # -- the decisions, carried out ------------------------------------------------------------------------------------

    def _follow(self, child: Child, exit: Exit) -> None:
        decision = self._decide(child, exit)
        match decision:
            case Leave():
                child.enter(Phase.DONE, self.world.clock())
                self._dynamic.pop(child.spec.name, None)
            case RestartAfter():
                child.streak = decision.streak
                self._history = decision.history
                self._restart_group(child, decision.delay_sec)
            case Escalate():
                crash = child.last_crash
                why = f"{crash.type}: {crash.message}" if exit.error and crash else "it ended"
                self._give_up(
                    child,
                    RestartIntensityExceeded(
                        f"{self.path} gave up: {decision.restarts} restarts within {decision.within_sec:g} s;"
                        f" the last was of {child.path} ({why})"
                    ),
                    exit.error,
                )
            case _:
                assert_never(decision)

    def _decide(self, child: Child, exit: Exit) -> Decision:
        now = anyio.current_time()
        return decide(
            restart=child.spec.restart,
            end=End.CRASHED if exit.ending is Ending.CRASHED else End.NORMAL,
            lived_sec=0.0 if child.ready_at is None else now - child.ready_at,
            streak=child.streak,
            history=self._history,
            intensity=self.spec.intensity,
            backoff=child.spec.backoff,
            now=now,
            dice=self.world.dice(),
        )

    def _restart_group(self, failed: Child, delay_sec: float) -> None:
        self._publish(events.Restarting(failed.path, self.world.clock(), delay_sec, failed.path))
        failed.due = True
        if failed.spec.name in self._dynamic:
            failed.delay_sec = delay_sec
            self._begin(failed)
            return
        if self.spec.strategy is Strategy.ONE_FOR_ONE:
            failed.delay_sec = delay_sec
            return
        self._pause_sec = delay_sec  # before the first of the group, whoever that is
        for index in affected(self.spec.strategy, self._children.index(failed), len(self._children)):
            child = self._children[index]
            if child is failed or child.due:
                continue
            # as in OTP a group restart ends a temporary child for good; one that never ran is started all the same
            child.dismissed = child.spec.restart is Restart.TEMPORARY and child.lives > 0
            if not child.dismissed:
                self._publish(events.Restarting(child.path, self.world.clock(), delay_sec, failed.path))
            if child.alive:
                child.recycle = True
            else:
                self._due_again(child)

    def _due_again(self, child: Child) -> None:
        child.recycle = False
        child.streak = 0
        if child.dismissed:
            child.dismissed = False
            child.enter(Phase.DONE, self.world.clock())
            return
        child.enter(Phase.DOWN, self.world.clock())
        child.due = True
        if child.spec.name in self._dynamic:
            self._begin(child)

    def _give_up(self, child: Child, failure: ActorError, cause: BaseException | None = None) -> None:
        failure.__cause__ = cause
        self.failure = failure
        self._stopping = True
        self._publish(events.Escalated(self.path, self.world.clock(), str(failure), child.path))

    # -- the plans, carried out ----------------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self._tasks is None or self.down.is_set():
            return
        if self._stopping:
            self._advance_stop()
            return
        ordered = not self.up.is_set() or self.spec.strategy is not Strategy.ONE_FOR_ONE
        plan = plan_serve([c.slot for c in self._children], ordered=ordered)
        for index in plan.stop:
            self._end(self._children[index])
        for index in plan.start:
            self._begin(self._children[index])
        if not self.up.is_set() and all(c.phase in (Phase.RUNNING, Phase.DONE) for c in self._children):
            self.since = self.world.clock()
            self.up.set()

    def _advance_stop(self) -> None:
        if self.spec.dynamic is not None:
            self.spec.dynamic.unbind(self)
        for child in self._dynamic.values():
            if child.phase is not Phase.STOPPING:
                self._end(child)
        if self._dynamic:
            return  # started last, so stopped first, all at once: they do not know each other
        plan = plan_stop([c.slot for c in self._children])
        for index in plan.stop:
            self._end(self._children[index])
        if plan.finished:
            self._publish(events.Stopped(self.path, self.world.clock(), self._stuck))
            self.down.set()
            if self._stuck and self._parent is not None:
                self._parent.stuck(self._stuck)  # the task of this supervisor ends only with theirs

    def _begin(self, child: Child) -> None:
        assert self._tasks is not None
        delay_sec = child.delay_sec + self._pause_sec
        child.delay_sec = self._pause_sec = 0.0
        child.due = False
        child.ready_at = None
        child.enter(Phase.WAITING, self.world.clock())
        report = Report(self, child)
        start = self._starter(child.spec, report)
        child.life = Life(report, start, child.path, _times(self.spec, child.spec))
        child.life.begin(self._tasks, delay_sec)

    def _end(self, child: Child) -> None:
        assert self._tasks is not None
        assert child.life is not None
        if child.phase is not Phase.STOPPING:
            child.enter(Phase.STOPPING, self.world.clock())
        child.life.stop(self._tasks, now=self._now)

    def _publish(self, event: events.Event) -> None:
        self.world.feed.publish(event)


@frozen
class Report:
    """Carries what one life reports to the machine, with the child that it is about."""

    machine: Machine
    child: Child

    def started(self) -> None:
        self.machine.child_started(self.child)

    def ready(self) -> None:
        self.machine.child_ready(self.child)

    def stuck(self, below: tuple[str, ...] = ()) -> None:
        self.machine.child_stuck(self.child, below)

    def ended(self, exit: Exit) -> None:
        self.machine.child_ended(self.child, exit)


def _why_stuck(child: Child) -> str:
    if isinstance(child.spec, SupervisorSpec):
        return "has a child that was cancelled and did not end"
    return "was cancelled and did not end"


def _times(parent: SupervisorSpec, spec: ChildSpec) -> Times:
    if isinstance(spec, SupervisorSpec):
        return Times(None, None, parent.kill_sec)  # its own children bound its times
    return Times(spec.start_timeout_sec, spec.shutdown_sec, parent.kill_sec)
