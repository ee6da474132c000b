"""A seeded simulation of supervision: random trees of actors that crash, hang, start slowly and will not die.

Everything follows from the seed: the tree, the scripts of the actors, the disturbances from outside and the order in
which trio runs its tasks. The laws are checked while it runs and over the events afterwards.
"""

from __future__ import annotations

import random
from collections import Counter

import anyio
import trio
from attrs import Factory, define

from pyoco_runtime.core import (
    ActorSpec,
    Backoff,
    ChildSpec,
    Context,
    Escalated,
    Event,
    Exited,
    Intensity,
    Ready,
    Restart,
    Restarting,
    Started,
    Stopped,
    Strategy,
    Stuck,
    Supervisor,
    SupervisorSpec,
    World,
)
from pyoco_runtime.errors import ActorError
from pyoco_runtime.testing.virtual_time import run_virtual


class Boom(Exception):
    """What simulated actors crash with."""


@define
class Log:
    """What happened, as seen from inside of the actors and from the feed."""

    events: list[Event] = Factory(list)
    running: Counter[str] = Factory(Counter)
    asked: list[tuple[float, str]] = Factory(list)


class Erratic:
    """An actor that does in each life what the dice say."""

    def __init__(self, dice: random.Random, log: Log) -> None:
        self._dice = dice
        self._log = log

    async def run(self, context: Context) -> None:
        self._log.running[context.path] += 1
        assert self._log.running[context.path] == 1, f"{context.path} runs twice at once"
        try:
            await self._live(context)
        finally:
            self._log.running[context.path] -= 1

    async def _live(self, context: Context) -> None:
        if self._dice.random() < 0.4:
            await anyio.sleep(self._dice.choice([0.0, 0.5, 3.0, 20.0]))
        if self._dice.random() < 0.1:
            raise Boom("while starting")
        context.ready()
        with context.until_stopping():
            await anyio.sleep(self._dice.choice([0.0, 1.0, 10.0, 1000.0]))
        if context.stopping.is_set():
            self._log.asked.append((anyio.current_time(), context.path))
            await self._drain()
        elif self._dice.random() < 0.7:
            raise Boom("while running")

    async def _drain(self) -> None:
        match self._dice.randrange(8):
            case 0:
                await anyio.sleep_forever()
            case 1:
                await anyio.sleep(2.0)
            case 2:
                raise Boom("while stopping")
            case 3 if self._dice.random() < 0.2:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(30.0)  # longer than the kill time: stuck, but not for ever
            case _:
                pass


class Simulated:
    """One run of the simulation."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.log = Log()
        self.disturbed = False
        self.spec = self._tree("root", depth=0)

    def _tree(self, name: str, depth: int) -> SupervisorSpec:
        children = tuple(self._child(f"c{n}", depth) for n in range(self.dice.randrange(1, 5)))
        return SupervisorSpec(
            name,
            children,
            strategy=self.dice.choice(list(Strategy)),
            intensity=Intensity(self.dice.choice([0, 1, 3, 10]), self.dice.choice([1.0, 10.0, 60.0])),
            restart=self.dice.choice([Restart.PERMANENT, Restart.PERMANENT, Restart.TRANSIENT, Restart.TEMPORARY]),
            backoff=Backoff(0.1, 2.0, 5.0, 0.2),
            kill_sec=4.0,
        )

    def _child(self, name: str, depth: int) -> ChildSpec:
        if depth < 2 and self.dice.random() < 0.3:
            return self._tree(name, depth + 1)
        return ActorSpec(
            name,
            lambda: Erratic(self.dice, self.log),
            restart=self.dice.choice(list(Restart)),
            backoff=Backoff(self.dice.choice([0.0, 0.1, 1.0]), 2.0, 5.0, self.dice.choice([0.0, 0.5])),
            start_timeout_sec=self.dice.choice([1.0, 10.0]),
            shutdown_sec=self.dice.choice([0.0, 1.0, 5.0]),
        )

    async def run(self) -> None:
        before = trio.lowlevel.current_statistics().tasks_living
        world = World(clock=trio.current_time, dice=self.dice.random)
        tree = Supervisor(self.spec, world=world)
        tree.feed.listen(self.log.events.append)
        with anyio.CancelScope() as scope:
            try:
                async with tree:
                    await self._disturb(tree, scope)
            except ActorError:
                pass  # it gave up, or was stopped before it was up: both are lawful ends
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert trio.lowlevel.current_statistics().tasks_living == before, "a task was left behind"
        assert not +self.log.running, f"still running: {+self.log.running}"

    async def _disturb(self, tree: Supervisor, scope: anyio.CancelScope) -> None:
        for _ in range(self.dice.randrange(4)):
            await anyio.sleep(self.dice.choice([0.0, 0.3, 2.0, 15.0]))
            if self.dice.random() < 0.3:
                self.disturbed = True
                path = self.dice.choice([s.path for s in tree.status().walk()][1:])
                with anyio.move_on_after(self.dice.choice([0.0, 60.0])):
                    await tree.restart(path)
        match self.dice.randrange(4):
            case 0:
                scope.cancel()
            case 1:
                tree.stop(now=True)
            case 2:
                tree.stop()
            case _:
                pass


def simulate(seed: int) -> list[str]:
    """Run one seed and check the laws; returns the trace, for replay."""
    world = Simulated(seed)
    try:
        run_virtual(world.run, seed=seed)
        Laws(world).check()
    except BaseException as error:
        error.add_note(f"seed {seed}; replay: PYOCO_SIM_SEED={seed} python -m pytest tests/sim -k one_seed -s")
        raise
    return [f"{type(e).__name__} {e.path} {e.at:.6f}" for e in world.log.events]


class Laws:
    """What must hold over the events of one run, whatever happened."""

    def __init__(self, world: Simulated) -> None:
        self._world = world
        self._events = world.log.events
        self._specs: dict[str, SupervisorSpec] = {}
        self._collect(world.spec, world.spec.name)

    def _collect(self, spec: SupervisorSpec, path: str) -> None:
        self._specs[path] = spec
        for child in spec.children:
            if isinstance(child, SupervisorSpec):
                self._collect(child, f"{path}/{child.name}")

    def check(self) -> None:
        self._lives_are_counted_and_do_not_overlap()
        self._starts_are_in_order()
        self._intensity_is_kept()
        self._stops_are_in_reverse_order()
        self._nothing_happens_under_a_stopped_supervisor()

    def _lives_are_counted_and_do_not_overlap(self) -> None:
        alive: set[str] = set()
        for event in self._events:
            if isinstance(event, Started):
                assert event.path not in alive, f"{event.path} started while alive"
                alive.add(event.path)
            elif isinstance(event, Exited):
                assert event.path in alive, f"{event.path} exited without a start"
                alive.discard(event.path)
        assert not alive, f"no exit for {alive}"

    def _starts_are_in_order(self) -> None:
        """A first life begins only when every earlier sibling has been ready, or has ended.

        With a group strategy that holds for every life: no earlier sibling is on its way up. A pause of one_for_one
        may end while an earlier sibling is down again, so later lives of such children are free.
        """
        rising: set[str] = set()
        settled: set[str] = set()
        for event in self._events:
            if isinstance(event, Started):
                parent, _, name = event.path.rpartition("/")
                spec = self._specs[parent]
                names = [c.name for c in spec.children]
                earlier = {f"{parent}/{n}" for n in names[: names.index(name)]}
                if event.life == 1:
                    assert earlier <= settled, f"{event.path} started before {earlier - settled}"
                if spec.strategy is not Strategy.ONE_FOR_ONE and not self._world.disturbed:
                    assert not earlier & rising, f"{event.path} started before {earlier & rising} was ready"
                settled = {path for path in settled if not path.startswith(f"{event.path}/")}
                rising.add(event.path)
            elif isinstance(event, Exited | Ready):
                rising.discard(event.path)
                settled.add(event.path)

    def _intensity_is_kept(self) -> None:
        """No window holds more restarts of its own than allowed."""
        own: dict[str, list[float]] = {}
        for event in self._events:
            parent = event.path.rpartition("/")[0]
            if isinstance(event, Started):
                own.pop(event.path, None)  # a new life of a supervisor has a new history
            elif isinstance(event, Restarting) and event.because == event.path:
                times = own.setdefault(parent, [])
                times.append(event.at)
                limit = self._specs[parent].intensity
                recent = [at for at in times if event.at - at <= limit.within_sec]
                assert len(recent) <= limit.max_restarts, f"{parent}: {len(recent)} restarts in its window"

    def _stops_are_in_reverse_order(self) -> None:
        """When a child is asked and its supervisor never starts anything again, all later siblings are down."""
        if self._world.disturbed:
            return  # a restart from outside stops one child alone, out of order
        asked = set(self._world.log.asked)
        last_start = {e.path.rpartition("/")[0]: e.at for e in self._events if isinstance(e, Started)}
        alive: set[str] = set()
        stuck: set[str] = set()
        for event in self._events:
            if isinstance(event, Started):
                alive.add(event.path)
            elif isinstance(event, Stuck):
                stuck.add(event.path)
            elif isinstance(event, Exited):
                alive.discard(event.path)
                parent, _, name = event.path.rpartition("/")
                final = event.at >= last_start[parent] and event.wanted and event.path not in stuck
                if parent in self._specs and final and any(path == event.path for _, path in asked):
                    names = [c.name for c in self._specs[parent].children]
                    later = {f"{parent}/{n}" for n in names[names.index(name) + 1 :]} - stuck
                    assert not later & alive, f"{event.path} was stopped before {later & alive}"

    def _nothing_happens_under_a_stopped_supervisor(self) -> None:
        """After Stopped only those that were stuck may still end."""
        stopped: dict[str, tuple[str, ...]] = {}
        for event in self._events:
            parent = event.path.rpartition("/")[0]
            if isinstance(event, Stopped):
                stopped[event.path] = event.stuck
            elif isinstance(event, Started):
                stopped.pop(event.path, None)
                assert parent not in stopped, f"{event.path} started under a stopped supervisor"
            elif isinstance(event, Exited) and parent in stopped:
                assert event.path in stopped[parent], f"{event.path} outlived its supervisor unreported"
            elif isinstance(event, Escalated):
                assert event.path not in stopped, f"{event.path} escalated after it had stopped"
