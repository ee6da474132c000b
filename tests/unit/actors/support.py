"""A worker's world for tests of its actors: memory ports, a fake runner, and a small tree around the one under test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from attrs import define, field

from pyoco_runtime.actors.dlq_publisher import DlqPublisher
from pyoco_runtime.actors.run import Run, Workshop
from pyoco_runtime.core import Actor, ActorSpec, Children, Context, Event, Exited, Restart, Supervisor, SupervisorSpec
from pyoco_runtime.in_flight import InFlight
from pyoco_runtime.letterbox import Letterbox
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Settlement
from pyoco_runtime.model.transition import cancelling
from pyoco_runtime.model.wire import snapshot_to
from pyoco_runtime.ports import Delivery
from pyoco_runtime.slots import Slots
from pyoco_runtime.testing.fake_runner import EndTask, FakeRunner, Script, Sleep, StartTask
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.memory_log import SOMEBODY, SnapshotStored
from pyoco_runtime.testing.run_laws import broken_laws
from pyoco_runtime.testing.virtual_time import run_virtual

MAX_BYTES = 262144
WORKER = "w-1"
A_DAY_SEC = 86400.0
OK: Script = (StartTask("t"), Sleep(1.0), EndTask("t", output=7))
AsyncTest = Callable[..., Awaitable[None]]


def in_virtual_time(test: AsyncTest) -> Callable[..., None]:
    """Run an async test on trio and on asyncio, in virtual time."""

    @functools.wraps(test)
    def sync(backend: Any, **fixtures: object) -> None:
        async def bounded() -> None:
            with anyio.fail_after(A_DAY_SEC):  # a test in which everybody waits for ever fails instead of hanging
                await test(**fixtures)

        run_virtual(bounded, backend=backend)

    wanted = inspect.signature(test).parameters.values()
    backend = inspect.Parameter("backend", inspect.Parameter.KEYWORD_ONLY)
    sync.__signature__ = inspect.Signature([*wanted, backend])  # type: ignore[attr-defined]  # what pytest reads
    del sync.__dict__["__wrapped__"]
    marked: Callable[..., None] = pytest.mark.parametrize("backend", ["trio", "asyncio"])(sync)
    return marked


class Serving:
    """Lets the fake runner play."""

    def __init__(self, runner: FakeRunner) -> None:
        self._runner = runner

    async def run(self, context: Context) -> None:
        context.ready()
        with context.until_stopping():
            await self._runner.serve()


class Shop:
    """The server, one process, and all that the actors of its worker share."""

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        *,
        places: int = 4,
        consumer: ConsumerSettings | None = None,
        **workshop: Any,
    ) -> None:
        self.server = MemoryJetStream(consumer=consumer)
        self.process = self.server.process(WORKER)
        self.runner = FakeRunner({"ok": OK, **(scripts or {})}, places=places)
        self.slots = Slots(places)
        self.in_flight = InFlight()
        self.letters = Letterbox()
        self.children = Children()
        self.workshop = Workshop(
            WORKER,
            self.process.run_store,
            self.runner,
            self.letters,
            self.in_flight,
            self.slots.vacate,
            virtual_clock,
            **workshop,
        )
        self.events: list[Event] = []

    @asynccontextmanager
    async def open(self, **actors: Callable[[], Actor]) -> AsyncIterator[Supervisor]:
        """Run the tree: the pool, the publisher of dead letters, the actors given, and the runs.

        Afterwards all that the laws ask of any worker is checked.
        """
        spec = SupervisorSpec(
            "shop",
            (
                ActorSpec("pool", lambda: Serving(self.runner)),
                ActorSpec("dlq", lambda: DlqPublisher(self.letters, self.process.dead_letters, self.process.link)),
                *(ActorSpec(name, make) for name, make in actors.items()),
                SupervisorSpec("runs", dynamic=self.children),
            ),
        )
        tree = Supervisor(spec)
        tree.feed.listen(self.events.append)
        async with tree:
            yield tree
        broken = [sentence for sentence in broken_laws(self.server.log) if not sentence.startswith(SOMEBODY)]
        assert not broken, broken
        assert len(self.in_flight) == 0, list(self.in_flight)
        assert self.slots.free == self.slots.total, f"{self.slots.free} of {self.slots.total} places are free"
        assert not self.crashes(), self.crashes()

    def crashes(self) -> list[Exited]:
        """The actors that crashed."""
        return [event for event in self.events if isinstance(event, Exited) and event.crash is not None]

    # -- what others do ------------------------------------------------------------------------------------------------

    def accept(self, run_id: str = "r-1", flow_name: str = "ok", **fields: Any) -> None:
        """Store the snapshot of a new run, as the gateway does."""
        values = {"status": RunStatus.PENDING, "tag": "default", **fields}
        self.write(RunSnapshot(run_id=run_id, flow_name=flow_name, **values))

    async def submit(self, run_id: str = "r-1", flow_name: str = "ok", tag: str = "default", **fields: Any) -> int:
        """Accept a run and publish its job; returns its sequence."""
        self.accept(run_id, flow_name, tag=tag, **fields)
        return await self.process.work_queue.publish(job(run_id, flow_name, tag=tag))

    def write(self, snapshot: RunSnapshot) -> None:
        """Write a snapshot as somebody else."""
        self.server.write_run(snapshot.run_id, snapshot_to(snapshot, MAX_BYTES)[0])

    def cancel(self, run_id: str = "r-1") -> None:
        """Ask for a run to be cancelled, as the gateway does."""
        self.write(cancelling(self.snapshot(run_id), virtual_clock(), "test"))

    # -- what the consumer does ----------------------------------------------------------------------------------------

    async def take(self, tag: str = "default") -> Delivery:
        """The next job of a tag."""
        async with self.process.work_queue.pulling(tag) as puller:
            with anyio.fail_after(3600):
                return await puller.wait()

    def start(self, delivery: Delivery) -> Started:
        """Start the run of a delivery in one of the places."""
        assert self.slots.try_reserve()
        self.slots.occupy()
        made = Run(delivery, self.workshop)
        started = Started(made, f"run:{delivery.attempt}")
        self.children.start(
            ActorSpec(started.name, lambda: _Told(made, started.over), restart=Restart.TEMPORARY, shutdown_sec=25.0)
        )
        return started

    async def begin(self, run_id: str = "r-1", flow_name: str = "ok", **fields: Any) -> Started:
        """Submit a run and start it."""
        await self.submit(run_id, flow_name, **fields)
        return self.start(await self.take())

    async def bring_to_end(self, run_id: str = "r-1", flow_name: str = "ok", **fields: Any) -> Started:
        """Submit a run, start it, and wait until its actor has ended."""
        started = await self.begin(run_id, flow_name, **fields)
        await started.end()
        return started

    # -- what a test looks at ------------------------------------------------------------------------------------------

    def snapshot(self, run_id: str = "r-1") -> RunSnapshot:
        """What is stored about a run."""
        stored = self.server.snapshot(run_id)
        assert stored is not None
        return stored.snapshot

    def settlements(self, seq: int = 1) -> list[Settlement]:
        """All that was said about one message."""
        return self.server.log.settlements(seq)

    def writes(self, run_id: str = "r-1", by: str = WORKER) -> list[SnapshotStored]:
        """The writes of one writer to one run."""
        return [
            fact
            for fact in self.server.log.of(SnapshotStored)
            if fact.run_id == run_id and fact.by == by and fact.revision
        ]

    def reasons(self) -> list[str]:
        """Why there are dead letters."""
        return [letter.reason for letter in self.server.log.letters()]


@define
class Started:
    """A run that was started, and the word that its actor has ended."""

    run: Run
    name: str
    over: anyio.Event = field(factory=anyio.Event)

    async def end(self, within_sec: float = 3600.0) -> None:
        """Wait until its actor has ended."""
        with anyio.fail_after(within_sec):
            await self.over.wait()


class _Told:
    """An actor that says when it is over."""

    def __init__(self, actor: Actor, over: anyio.Event) -> None:
        self._actor = actor
        self._over = over

    async def run(self, context: Context) -> None:
        try:
            await self._actor.run(context)
        finally:
            self._over.set()


class FakeDelivery:
    """A delivery that only remembers when it was ticked; `refuse` is what the next ticks raise."""

    def __init__(self, run_id: str = "r-1", *, ack_wait_sec: float = 30.0) -> None:
        self.job: Job | InvalidJob = job(run_id)
        self.attempt = Attempt(1, 1)
        self.tag = "default"
        self.subject = "pyoco.work.default"
        self.is_last = False
        self.ack_wait_sec = ack_wait_sec
        self.ticks: list[float] = []
        self.refuse: list[Exception] = []
        self.during: Callable[[], None] = lambda: None

    async def in_progress(self) -> None:
        await checkpoint()
        self.during()
        if self.refuse:
            raise self.refuse.pop(0)
        self.ticks.append(anyio.current_time())

    async def settle(self, settlement: Settlement) -> None:
        raise AssertionError("nobody settles this one")


class FakeSeat:
    """A run in our hands that only remembers what it was asked for, and when."""

    def __init__(self, run_id: str = "r-1", delivery: FakeDelivery | None = None) -> None:
        self.run_id = run_id
        self.delivery: Any = delivery or FakeDelivery(run_id)
        self.since = virtual_clock()
        self.looks: list[float] = []
        self.beats: list[float] = []

    def look(self) -> None:
        self.looks.append(anyio.current_time())

    def beat(self) -> None:
        self.beats.append(anyio.current_time())


def job(run_id: str = "r-1", flow_name: str = "ok", tag: str = "default", **fields: Any) -> Job:
    """A job."""
    return Job(run_id=run_id, flow_name=flow_name, tag=tag, submitted_at=0.0, **fields)


@asynccontextmanager
async def alone(make: Callable[[], Actor], *, shutdown_sec: float = 5.0) -> AsyncIterator[Supervisor]:
    """One actor under a supervisor, as root/it; a crash of it fails the test."""
    events: list[Event] = []
    tree = Supervisor(SupervisorSpec("root", (ActorSpec("it", make, shutdown_sec=shutdown_sec),)))
    tree.feed.listen(events.append)
    async with tree:
        yield tree
    crashed = [event for event in events if isinstance(event, Exited) and event.crash is not None]
    assert not crashed, crashed


async def settle_down() -> None:
    """Let everybody who can run at this moment do so."""
    for _ in range(20):
        await checkpoint()
