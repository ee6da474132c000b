"""A seeded simulation of a cluster: several workers and gateways on one simulated JetStream, with faults everywhere.

Everything follows from the seed: the workers, the runs, what the network does to every call, who is killed, stopped,
cut off or restarted and when, and the order in which trio runs its tasks. After the chaos comes calm, in which all that
was accepted must come to its end; then the laws of design.md part 4 are checked over what server and runners saw.
"""

from __future__ import annotations

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import anyio
import trio
from attrs import evolve

from pyoco_runtime.actors.link import Link
from pyoco_runtime.actors.reconciler import Reconciler
from pyoco_runtime.core import ActorSpec, Context, Escalated, Exited, Supervisor, SupervisorSpec, World
from pyoco_runtime.errors import ActorError, NatsUnavailable, RevisionConflict
from pyoco_runtime.layout import SHIPPED, parse
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import Completed
from pyoco_runtime.model.reconcile import Limits
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Nak
from pyoco_runtime.model.transition import cancelling
from pyoco_runtime.model.wire import job_from
from pyoco_runtime.model.worker import WorkerState
from pyoco_runtime.settings import Isolation, Role, Settings
from pyoco_runtime.testing.fake_runner import (
    EndTask,
    Executed,
    Fail,
    FakeRunner,
    IgnoreCancel,
    Print,
    Script,
    Sleep,
    StartTask,
    Step,
)
from pyoco_runtime.testing.faults import Faults, Lost, Slow
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import EPOCH, MemoryJetStream, virtual_clock
from pyoco_runtime.testing.memory_log import JobDelivered, JobSettled, SnapshotStored
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.run_laws import broken_laws
from pyoco_runtime.testing.virtual_time import run_virtual
from pyoco_runtime.tree import KNOWN, members, supervisor_spec
from pyoco_runtime.worker_parts import WorkerParts, WorkerPorts

LAYOUT = parse("", source=SHIPPED, known=KNOWN)
TAGS = ("a", "b", "c")
CHAOS_SEC = 40.0
CALM_SEC = 3600.0  # by then all must be over; most seeds need a minute
REQUEST_SEC = 5.0
SOON_SEC = 1.0  # how soon a cancel is heard when nothing goes wrong
LIMITS = Limits(
    pending_sec=8.0,
    silent_sec=10.0,
    longest_pause_sec=30.0,
    round_sec=2.0,
    stuck_sec=20.0,
    stuck_gap_sec=5.0,
    letter_grace_sec=5.0,
)


def _steps(job: Job) -> tuple[Step, ...]:
    return (StartTask("t"), Sleep(float(job.params["sec"])), EndTask("t", output=1))


SCRIPTS: dict[str, Script] = {
    "empty": (),
    "ok": _steps,
    "fails": lambda job: (*_steps(job)[:2], Fail("ValueError: no")),
    "chatty": lambda job: (StartTask("t"), *[s for n in range(20) for s in (Print("t", f"{n} "), Sleep(0.05))]),
    "deaf": (StartTask("t"), IgnoreCancel(), Sleep(9.0), EndTask("t")),
}
FLOWS = ("empty", "ok", "ok", "ok", "fails", "chatty", "deaf", "missing")


class Pool:
    """A fake runner as a worker wants it, and the actor that lets it play."""

    def __init__(self, runner: FakeRunner) -> None:
        self._runner = runner
        self.begin = runner.begin

    async def close(self) -> None:
        """Nothing to end."""

    async def run(self, context: Context) -> None:
        context.ready()
        with context.until_stopping():
            await self._runner.serve()


class House:
    """One simulated process and its tree."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self.process: MemoryProcess = cluster.server.process(name, connected=False)
        self.tree: Supervisor | None = None
        self.is_killed = False
        self._cluster = cluster
        self._leave = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def is_up(self) -> bool:
        """It runs or will, and nobody has asked it to stop."""
        return not self.is_killed and not self._leave.is_set()

    def spec(self) -> SupervisorSpec:
        """The tree that it runs."""
        raise NotImplementedError

    async def live(self) -> None:
        """Run until it is killed or asked to stop."""
        tree = Supervisor(self.spec(), world=World(clock=virtual_clock, dice=self._cluster.dice.random))
        tree.feed.listen(self._on_event)
        with self._scope:
            try:
                async with tree:
                    self.tree = tree
                    await self._leave.wait()
            finally:
                self.tree = None

    def kill(self) -> None:
        """Be gone at this moment: nothing that its code still does reaches anybody."""
        self.is_killed = True
        self.process.crash()
        self._scope.cancel()

    def leave(self) -> None:
        """Stop in order."""
        self._leave.set()

    def _on_event(self, event: object) -> None:
        if isinstance(event, Escalated) or (isinstance(event, Exited) and event.crash is not None):
            self._cluster.complaints.append(f"{self.name}: {event}")


class Worker(House):
    """A process of the role worker: the shipped tree on memory ports, with scripts for flows."""

    def __init__(self, cluster: Cluster, name: str, tags: tuple[str, ...]) -> None:
        super().__init__(cluster, name)
        dice = cluster.dice
        self.settings = Settings(
            role=Role.WORKER,
            isolation=Isolation.THREAD,
            tags=tags,
            concurrency=dice.choice([1, 2, 4]),
            worker_heartbeat_interval_sec=dice.choice([1.0, 5.0]),
            run_heartbeat_interval_sec=dice.choice([0.5, 1.0]),
            cancel_grace_period_sec=dice.choice([1.0, 4.0]),
        )
        self.runner = FakeRunner(SCRIPTS, places=self.settings.concurrency, cancel_sec=dice.choice([0.0, 0.3]))
        self.pool = Pool(self.runner)
        ports = WorkerPorts(
            link=self.process.link,
            runs=self.process.run_store,
            queue=self.process.work_queue,
            registry=self.process.registry,
            letters=self.process.dead_letters,
            wheels=self.process.wheels,
            pool=self.pool,
            clock=virtual_clock,
        )
        self.parts = WorkerParts(self.settings, ports, name)

    def spec(self) -> SupervisorSpec:
        present = members(self.settings) - {"probe", "console"}
        makers = self.parts.makers() | {"link": lambda layout: lambda: Link(self.process.link)}
        spec = supervisor_spec(LAYOUT.root, present, makers, self.parts)
        return evolve(spec, children=(ActorSpec("pool", lambda: self.pool), *spec.children))

    def left_over(self) -> Iterator[str]:
        """What it should not hold when it is down."""
        slots = self.parts._slots
        if (slots.free, slots.running) != (slots.total, 0):
            yield f"{self.name}: {slots.free} of {slots.total} places are free, {slots.running} have a run"
        if len(self.parts._in_flight):
            yield f"{self.name}: {len(self.parts._in_flight)} runs are in flight"
        if self.runner.running:
            yield f"{self.name}: still executes {self.runner.running}"


class Gateway(House):
    """A process of the role gateway, as far as runs are concerned: it submits, cancels and reconciles."""

    def spec(self) -> SupervisorSpec:
        process = self.process

        def reconciler() -> Reconciler:
            return Reconciler(
                process.run_store, process.inspector, process.dead_letters, process.link, virtual_clock, LIMITS
            )

        return SupervisorSpec(
            "runtime", (ActorSpec("link", lambda: Link(process.link)), ActorSpec("reconciler", reconciler))
        )

    async def submit(self, job: Job, *, dies_between: bool) -> bool:
        """What POST /runs does; whether the run was accepted. Raises nothing: a refusal is an answer."""
        store, queue = self.process.run_store, self.process.work_queue
        snapshot = RunSnapshot(
            run_id=job.run_id,
            flow_name=job.flow_name,
            status=RunStatus.PENDING,
            tag=job.tag,
            tags=(job.tag,),
            params=job.params,
            submitted_at=job.submitted_at,
            updated_at=job.submitted_at,
        )
        try:
            revision = await store.create(snapshot)
            if dies_between:
                return False
            try:
                await queue.publish(job)
            except NatsUnavailable:
                await store.remove(job.run_id, revision)
                return False
        except (NatsUnavailable, RevisionConflict):
            return False
        return True

    async def cancel(self, run_id: str) -> None:
        """What POST /runs/{id}/cancel does."""
        for _ in range(5):
            try:
                found = await self.process.run_store.get(run_id)
                if found is None or found.snapshot.status.is_terminal:
                    return
                wanted = cancelling(found.snapshot, virtual_clock(), self.name)
                await self.process.run_store.update(wanted, found.revision)
            except RevisionConflict:
                continue
            except NatsUnavailable:
                pass
            return


class Cluster:
    """One run of the simulation. A gentle one has no faults and no kills: actors are restarted, and workers stopped."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.is_gentle = seed % 5 == 0
        self.complaints: list[str] = []
        self.accepted: set[str] = set()
        self.cancelled: set[str] = set()
        self.done: list[str] = []
        self.workers: list[Worker] = []
        self.gateways: list[Gateway] = []
        self.runs = 0
        self.last: list[str] = []

    async def run(self) -> None:
        """Chaos, calm, and the check of what must be left: nothing."""
        before = trio.lowlevel.current_statistics().tasks_living
        self.server = MemoryJetStream(faults=self._faults(), consumer=self._consumer())
        async with anyio.create_task_group() as tasks:
            self.tasks = tasks
            for n in range(self.dice.randrange(1, 3)):
                self._open(Gateway(self, f"g-{n}"))
            for tags in self._all_tags():
                self._start_worker(tags)
            await self._chaos()
            await self._calm()
            self.last = [house.name for house in self._houses() if isinstance(house, Worker)]
            for house in self._houses():
                house.leave()
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        left = trio.lowlevel.current_statistics().tasks_living - before
        assert left == 0, f"{left} tasks were left behind"

    # -- the world -----------------------------------------------------------------------------------------------------

    def _faults(self) -> Faults:
        dice = self.dice
        if self.is_gentle:
            return Faults(dice, jitter_sec=dice.choice([0.0, 0.01]))
        faults = Faults(dice, jitter_sec=dice.choice([0.0, 0.01, 0.3]), request_sec=REQUEST_SEC)
        rate = dice.choice([0.0, 0.01, 0.05])
        faults.rate(None, Lost.BEFORE, rate)
        faults.rate(None, Lost.AFTER, rate)
        faults.rate(None, Slow(7.0), dice.choice([0.0, 0.02]))
        return faults

    def _consumer(self) -> ConsumerSettings:
        dice = self.dice
        if self.is_gentle:
            return ConsumerSettings(ack_wait_sec=2.0, max_deliver=20)  # short: a job that nobody ticks for comes back
        return ConsumerSettings(
            ack_wait_sec=dice.choice([2.0, 5.0, 30.0]),
            max_deliver=dice.choice([2, 4, 20]),
            max_ack_pending=dice.choice([2, 200]),
        )

    def _all_tags(self) -> list[tuple[str, ...]]:
        """Of each worker; every tag has one."""
        some = [tuple(sorted(self.dice.sample(TAGS, self.dice.randrange(1, 4)))) for _ in range(self.dice.randrange(3))]
        return [TAGS, *some]

    def _open(self, house: Gateway) -> None:
        self.gateways.append(house)
        self.tasks.start_soon(house.live, name=house.name)

    def _start_worker(self, tags: tuple[str, ...]) -> None:
        worker = Worker(self, f"w-{len(self.workers)}", tags)
        self.workers.append(worker)
        self.tasks.start_soon(worker.live, name=worker.name)

    def _houses(self) -> list[House]:
        return [house for house in (*self.gateways, *self.workers) if house.is_up]

    # -- chaos ---------------------------------------------------------------------------------------------------------

    async def _chaos(self) -> None:
        await anyio.sleep(0.5)
        async with anyio.create_task_group() as tasks:
            for _ in range(self.dice.randrange(3, 12)):
                tasks.start_soon(self._one_run)
            for _ in range(self.dice.randrange(0, 10)):
                tasks.start_soon(self._one_disturbance)

    async def _one_run(self) -> None:
        dice = self.dice
        await anyio.sleep(dice.random() * CHAOS_SEC / 2)
        if not self.gateways:
            return
        self.runs += 1
        run_id, gateway = f"r-{self.runs}", dice.choice(self.gateways)
        sec = dice.choice([0.05, 0.5, 3.0, 12.0])
        job = Job(
            run_id=run_id,
            flow_name=dice.choice(FLOWS),
            tag=dice.choice(TAGS),
            submitted_at=virtual_clock(),
            params={"sec": sec},
        )
        dies_between = not self.is_gentle and dice.random() < 0.05
        if await gateway.submit(job, dies_between=dies_between):
            self.accepted.add(run_id)
        if dice.random() < 0.25:
            await anyio.sleep(dice.choice([0.0, 0.1, 1.0, 6.0]))
            self.cancelled.add(run_id)
            await gateway.cancel(run_id)

    async def _one_disturbance(self) -> None:
        dice = self.dice
        await anyio.sleep(dice.random() * CHAOS_SEC)
        match dice.randrange(8) if not self.is_gentle else dice.choice([1, 7, 7, 7]):
            case 0:
                await self._replace_worker(kill=True)
            case 1:
                await self._replace_worker(kill=False)
            case 2:
                await self._cut_off([dice.choice(self._houses())])
            case 3:
                self._say("the server restarts")
                self.server.restart()
                await self._mend(self._houses(), dice.choice([0.1, 3.0]))
            case 4 if self.runs:
                self.server.faults.conflict_next(f"r-{dice.randrange(self.runs) + 1}")
            case 5 if self.server.work.messages:
                seq = dice.choice(sorted(self.server.work.messages))
                self._say(f"redeliver {seq}")
                self.server.faults.redeliver_now(seq)
            case _:
                self._restart_actor()

    async def _replace_worker(self, *, kill: bool) -> None:
        alive = [worker for worker in self.workers if worker.is_up]
        if not alive:
            return
        worker = self.dice.choice(alive)
        self._say(f"{'kill' if kill else 'stop'} {worker.name}")
        if kill:
            worker.kill()
        else:
            worker.leave()
        await anyio.sleep(self.dice.choice([0.0, 1.0, 10.0]))
        self._start_worker(worker.settings.tags)

    async def _cut_off(self, houses: list[House]) -> None:
        for house in houses:
            self._say(f"cut off {house.name}")
            house.process.disconnect()
        await self._mend(houses, self.dice.choice([0.1, 2.0, 10.0]))

    async def _mend(self, houses: list[House], after_sec: float) -> None:
        await anyio.sleep(after_sec)
        for house in houses:
            if not house.is_killed:
                house.process.reconnect()

    def _restart_actor(self) -> None:
        house = self.dice.choice(self._houses())
        if house.tree is None:
            return
        # not the link: what is on the wire is lost with a connection, and comes back after its ack wait
        gentle = {"heartbeat", "ticker", "cancel-watcher", "dlq-publisher", "reconciler", "runs"}
        paths = [each.path for each in house.tree.status().walk()][1:]
        if self.is_gentle:
            paths = [path for path in paths if path.rpartition("/")[2] in gentle or "/consumer:" in path]
        paths = [path for path in paths if not path.endswith("/pool")]
        path = self.dice.choice(paths)
        self._say(f"restart {house.name} {path}")
        with suppress(ActorError):  # it is on its way down
            house.tree.request_restart(path)

    # -- calm ----------------------------------------------------------------------------------------------------------

    async def _calm(self) -> None:
        self._say("calm")
        self.server.faults.calm()
        for house in self._houses():
            house.process.reconnect()
        if not any(worker.is_up and worker.settings.tags == TAGS for worker in self.workers):
            self._start_worker(TAGS)
        with anyio.move_on_after(CALM_SEC):
            while self._unfinished():  # noqa: ASYNC110 - virtual time, and nobody tells when all is over
                await anyio.sleep(1.0)
        unfinished = self._unfinished()
        assert not unfinished, f"not over after {CALM_SEC:g} s of calm: {unfinished}"

    def _unfinished(self) -> list[str]:
        runs = [entry.key for entry in self.server.runs.bucket.entries() if entry.value is not None]
        found = [self.server.snapshot(run_id) for run_id in runs]
        open_runs = [
            f"{s.snapshot.run_id} {s.snapshot.status}" for s in found if s and not s.snapshot.status.is_terminal
        ]
        return open_runs + [f"job {seq}" for seq in self.server.work.messages if seq not in self._refused()]

    def _refused(self) -> set[int]:
        """Used up jobs of runs that were never accepted: the reconciler clears them when it has a run to look after."""
        used_up = self.server.work.stuck()
        return {each.seq for each in used_up if self.server.snapshot(job_from(each.data).run_id or "-") is None}

    def _say(self, what: str) -> None:
        self.done.append(f"{anyio.current_time():.6f} {what}")


class Laws:
    """What must hold over one run of the simulation, whatever happened."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._log = cluster.server.log
        self._executed: dict[str, list[Executed]] = defaultdict(list)
        for worker in cluster.workers:
            for each in worker.runner.executions:
                self._executed[each.run_id].append(each)

    def check(self) -> None:
        """Raise with everything that is broken."""
        broken = [*broken_laws(self._log), *self._cluster.complaints]
        for worker in self._cluster.workers:
            broken += worker.left_over()
        broken += self._every_accepted_run()
        broken += self._one_execution_an_attempt()
        broken += self._no_execution_after_the_end()
        broken += self._a_cancel_stands()
        broken += self._workers_say_good_bye()
        if self._cluster.is_gentle:
            broken += self._each_run_once()
            broken += self._no_job_lies_idle()
            broken += self._cancels_are_heard()
        assert not broken, "\n".join(broken)

    def _every_accepted_run(self) -> Iterator[str]:
        lettered = {letter.run_id for letter in self._log.letters()}
        for run_id in self._cluster.accepted:
            stored = self._cluster.server.snapshot(run_id)
            if stored is None:
                if run_id not in lettered:
                    yield f"{run_id} was accepted and is gone without a letter"
                continue
            run = stored.snapshot
            if run.status is RunStatus.COMPLETED and not self._completed(run):
                yield f"{run_id} is COMPLETED by {run.attempt}, which did not complete it"
            if run.status is RunStatus.CANCELLED and run_id not in self._cluster.cancelled:
                yield f"{run_id} is CANCELLED and nobody wanted that"

    def _completed(self, run: RunSnapshot) -> bool:
        return any(
            each.attempt == run.attempt and isinstance(each.ending, Completed) for each in self._executed[run.run_id]
        )

    def _one_execution_an_attempt(self) -> Iterator[str]:
        for run_id, executed in self._executed.items():
            for attempt, times in Counter(each.attempt for each in executed).items():
                if times > 1:
                    yield f"{run_id} was executed {times} times in attempt {attempt}"

    def _no_execution_after_the_end(self) -> Iterator[str]:
        """Whoever executes has claimed before; and a claim is not old when its flow begins after the run's end."""
        claims, ends = self._claims_and_ends()
        for run_id, executed in self._executed.items():
            for each in executed:
                claim = claims.get((run_id, each.attempt))
                if claim is None:
                    yield f"{run_id} was executed in attempt {each.attempt} without a claim"
                elif each.began_at > ends.get(run_id, each.began_at) and each.began_at > claim + REQUEST_SEC + 1:
                    yield f"{run_id} was executed in attempt {each.attempt} although it was over"

    def _claims_and_ends(self) -> tuple[dict[tuple[str, Attempt], float], dict[str, float]]:
        claims: dict[tuple[str, Attempt], float] = {}
        ends: dict[str, float] = {}
        for fact in self._log.of(SnapshotStored):
            run = fact.snapshot
            if not fact.revision or run is None:
                continue
            if run.status.is_terminal:
                ends.setdefault(run.run_id, fact.at)
            elif run.attempt is not None:
                claims.setdefault((run.run_id, run.attempt), fact.at)
        return claims, ends

    def _a_cancel_stands(self) -> Iterator[str]:
        asked: set[str] = set()
        for fact in self._log.of(SnapshotStored):
            run = fact.snapshot
            if not fact.revision or run is None or run.status.is_terminal:
                continue
            if run.status is RunStatus.CANCELLING:
                asked.add(run.run_id)
            elif run.run_id in asked:
                yield f"{fact.by} at {fact.at:.3f}: {run.run_id} was to be cancelled and is {run.status} again"

    def _workers_say_good_bye(self) -> Iterator[str]:
        for name in self._cluster.last:
            record = self._cluster.server.worker(name)
            if record is None or record.state is not WorkerState.STOPPED_GRACEFUL:
                yield f"{name} left in order, and its record says {record and record.state}"

    def _each_run_once(self) -> Iterator[str]:
        """An actor that is restarted alone repeats, loses and delays nothing that others hold."""
        for run_id in self._cluster.accepted:
            times = len(self._executed[run_id])
            if times > 1 or (times == 0 and run_id not in self._cluster.cancelled):
                yield f"{run_id} was executed {times} times although nothing went wrong"

    def _no_job_lies_idle(self) -> Iterator[str]:
        given_back = {
            (fact.seq, fact.delivery) for fact in self._log.of(JobSettled) if isinstance(fact.settlement, Nak)
        }
        for fact in self._log.of(JobDelivered):
            if fact.delivery > 1 and (fact.seq, fact.delivery - 1) not in given_back:
                yield f"job {fact.seq} lay in somebody's hands until its ack wait although nothing went wrong"

    def _cancels_are_heard(self) -> Iterator[str]:
        """A run that was executed when somebody cancelled it ends soon, or within the grace if it does not listen."""
        _, ends = self._claims_and_ends()
        graces = {each.name: each.settings.cancel_grace_period_sec for each in self._cluster.workers}
        for run_id in self._cluster.accepted & self._cluster.cancelled:
            stored = self._cluster.server.snapshot(run_id)
            run = stored.snapshot if stored else None
            if run is None or run.cancel_requested_at is None or not self._executed[run_id]:
                continue
            grace_sec = graces.get(run.worker_id or "", 0.0) if run.flow_name == "deaf" else 0.0
            since = max(run.cancel_requested_at, self._executed[run_id][0].began_at)
            if ends[run_id] > since + grace_sec + SOON_SEC:
                yield f"{run_id} was cancelled at {since:.3f} and ended at {ends[run_id]:.3f}"


def simulate_cluster(seed: int) -> list[str]:
    """Run one seed and check the laws; returns the trace, for replay."""
    cluster = Cluster(seed)
    try:
        with _quiet():
            run_virtual(cluster.run, seed=seed)
        Laws(cluster).check()
    except BaseException as error:
        error.add_note(f"seed {seed}; replay: PYOCO_SIM_SEED={seed} python -m pytest tests/sim -k one_cluster -s")
        raise
    return trace(cluster)


def trace(cluster: Cluster) -> list[str]:
    """What was done to the cluster and what the server saw, in order."""
    facts = [(fact.at - EPOCH, str(fact)) for fact in cluster.server.log.facts]
    done = [(float(line.split()[0]), f"-- {line}") for line in cluster.done]
    return [f"{at:.6f} {text}" for at, text in sorted(facts + done, key=lambda each: each[0])]


@contextmanager
def _quiet() -> Iterator[None]:
    """Faults by the thousand are not worth a log line each; PYOCO_SIM_SEED prints the trace instead."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
