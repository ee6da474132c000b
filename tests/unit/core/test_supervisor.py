"""The supervisor's behaviour, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pyoco_runtime.core import (
    ActorSpec,
    Backoff,
    Channel,
    Children,
    Context,
    Escalated,
    Event,
    Exited,
    Intensity,
    Phase,
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
    current_path,
)
from pyoco_runtime.errors import (
    ChildStuck,
    DuplicateChild,
    NoSuchActor,
    NotRunning,
    RestartIntensityExceeded,
    StartTimeout,
)

Body = Callable[[Context], Awaitable[None]]
QUICK = Backoff(initial_sec=1.0, factor=2.0, max_sec=60.0, jitter=0.0)


class Scripted:
    """An actor whose `run` is a function."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def run(self, context: Context) -> None:
        await self._body(context)


async def idle(context: Context) -> None:
    """Serve until asked to stop."""
    context.ready()
    await context.stopping.wait()


async def finish(context: Context) -> None:
    """End normally at once."""
    context.ready()


class Boom(Exception):
    """What scripted actors crash with."""


def actor(name: str, body: Body = idle, **options: object) -> ActorSpec:
    options.setdefault("backoff", QUICK)
    return ActorSpec(name, lambda: Scripted(body), **options)  # type: ignore[arg-type]  # options of ActorSpec


def crash_times(count: int) -> Body:
    """Crash in the first `count` lives, then serve."""
    left = [count]

    async def body(context: Context) -> None:
        context.ready()
        if left[0] > 0:
            left[0] -= 1
            raise Boom(f"{left[0]} to go")
        await context.stopping.wait()

    return body


def tree(*children: ActorSpec | SupervisorSpec, **options: object) -> SupervisorSpec:
    return SupervisorSpec("root", children, **options)  # type: ignore[arg-type]  # options of SupervisorSpec


class Trace:
    """A supervised tree with its events recorded."""

    def __init__(self, spec: SupervisorSpec) -> None:
        self.events: list[Event] = []
        self.supervisor = Supervisor(spec, world=World(clock=anyio.current_time, dice=lambda: 0.5))
        self.supervisor.feed.listen(self.events.append)

    def of(self, kind: type[Event]) -> list[str]:
        return [e.path.removeprefix("root/") for e in self.events if isinstance(e, kind)]

    def phase(self, path: str) -> Phase:
        return next(s.phase for s in self.supervisor.status().walk() if s.path == f"root/{path}")

    def restarts(self) -> dict[str, int]:
        return {s.path.removeprefix("root/"): s.restarts for s in self.supervisor.status().walk() if s.path != "root"}


async def test_children_start_in_order_each_after_the_one_before_is_ready() -> None:
    """The second child is not started before the first has said that it is ready."""

    async def slow(context: Context) -> None:
        await anyio.sleep(3)
        await idle(context)

    trace = Trace(tree(actor("a", slow), actor("b"), actor("c", slow)))
    async with trace.supervisor:
        assert anyio.current_time() >= 6
        steps = [(type(e), e.path[-1]) for e in trace.events]
    assert steps == [(kind, name) for name in "abc" for kind in (Started, Ready)]


async def test_children_stop_in_reverse_order_one_at_a_time() -> None:
    """The last started is down before the one before it is asked."""
    asked: list[str] = []

    def draining(name: str) -> Body:
        async def body(context: Context) -> None:
            await idle(context)
            asked.append(name)
            await anyio.sleep(2)
            asked.append(f"{name} down")

        return body

    trace = Trace(tree(*(actor(n, draining(n)) for n in "abc")))
    async with trace.supervisor:
        pass
    assert asked == ["c", "c down", "b", "b down", "a", "a down"]


async def test_a_crash_restarts_one_child_and_leaves_its_siblings_alone() -> None:
    """one_for_one: only the child that failed gets a new life."""
    trace = Trace(tree(actor("a"), actor("b", crash_times(1)), actor("c")))
    async with trace.supervisor:
        await anyio.sleep(10)
        assert trace.restarts() == {"a": 0, "b": 1, "c": 0}


async def test_one_for_all_restarts_everybody_in_order() -> None:
    """The survivors are stopped in reverse order, then all are started in order."""
    trace = Trace(tree(actor("a"), actor("b", crash_late()), actor("c"), strategy=Strategy.ONE_FOR_ALL))
    async with trace.supervisor:
        await anyio.sleep(30)
        assert trace.restarts() == {"a": 1, "b": 1, "c": 1}
        assert trace.of(Exited) == ["b", "c", "a"]
        assert trace.of(Started)[3:] == ["a", "b", "c"]


async def test_rest_for_one_restarts_the_failed_and_those_after_it() -> None:
    """Children started before the failed one keep running."""
    trace = Trace(tree(actor("a"), actor("b", crash_late()), actor("c"), strategy=Strategy.REST_FOR_ONE))
    async with trace.supervisor:
        await anyio.sleep(30)
        assert trace.restarts() == {"a": 0, "b": 1, "c": 1}
        assert trace.of(Started)[3:] == ["b", "c"]


def crash_late() -> Body:
    """Serve for 5 s and crash, in the first life only."""
    lives = [0]

    async def body(context: Context) -> None:
        context.ready()
        lives[0] += 1
        if lives[0] == 1:
            await anyio.sleep(5)
            raise Boom("late")
        await context.stopping.wait()

    return body


async def test_a_group_restart_waits_out_the_pause_before_the_first_start() -> None:
    """With one_for_all the pause comes before the first of the group, not before the one that failed."""
    trace = Trace(tree(actor("a"), actor("b", crash_late()), strategy=Strategy.ONE_FOR_ALL))
    async with trace.supervisor:
        await anyio.sleep(30)
    starts = [e.at for e in trace.events if isinstance(e, Started)]
    crash = next(e.at for e in trace.events if isinstance(e, Exited))
    assert starts[2] == pytest.approx(crash + 1.0)


@pytest.mark.parametrize(
    ("restart", "body", "lives"),
    [
        (Restart.PERMANENT, crash_times, 2),
        (Restart.TRANSIENT, crash_times, 2),
        (Restart.TEMPORARY, crash_times, 1),
    ],
)
async def test_restart_policy_after_a_crash(restart: Restart, body: Callable[[int], Body], lives: int) -> None:
    """permanent and transient come back after a crash, temporary does not."""
    trace = Trace(tree(actor("a", body(1), restart=restart)))
    async with trace.supervisor:
        await anyio.sleep(30)
        assert trace.of(Started) == ["a"] * lives


async def test_a_normal_end_restarts_only_a_permanent_child() -> None:
    """transient and temporary children may finish; the tree stays up without them."""
    trace = Trace(
        tree(actor("t", finish, restart=Restart.TRANSIENT), actor("u", finish, restart=Restart.TEMPORARY), actor("z"))
    )
    async with trace.supervisor:
        await anyio.sleep(30)
        assert trace.phase("t") is trace.phase("u") is Phase.DONE
        assert trace.of(Restarting) == []


async def test_the_pause_grows_with_every_crash_in_a_row() -> None:
    """Exponential backoff: 1, 2, 4, 8 seconds."""
    trace = Trace(tree(actor("a", crash_times(4))))
    async with trace.supervisor:
        await anyio.sleep(60)
    assert [e.delay_sec for e in trace.events if isinstance(e, Restarting)] == [1, 2, 4, 8]


async def test_a_long_healthy_life_makes_the_next_pause_short_again() -> None:
    """The streak of crashes ends with a life longer than the intensity window."""

    async def body(context: Context) -> None:
        context.ready()
        await anyio.sleep(61)
        raise Boom

    trace = Trace(tree(actor("a", body), intensity=Intensity(3, 60)))
    async with trace.supervisor:
        await anyio.sleep(3600)
    delays = [e.delay_sec for e in trace.events if isinstance(e, Restarting)]
    assert len(delays) > 50
    assert set(delays) == {1.0}


async def test_too_many_restarts_escalate_with_the_last_crash_in_the_message() -> None:
    """The supervisor fails with an error that names the child and why it died."""
    trace = Trace(tree(actor("a"), actor("b", crash_times(99)), intensity=Intensity(3, 60)))
    with pytest.raises(RestartIntensityExceeded, match=r"root gave up: 4 restarts within 60 s.*root/b \(Boom"):
        async with trace.supervisor:
            await anyio.sleep_forever()
    assert trace.of(Escalated) == ["root"]
    assert trace.of(Exited)[-1] == "a"


async def test_escalation_restarts_the_branch_then_the_root_gives_up() -> None:
    """A failed supervisor is a crash in its parent, with the parent's own policy."""
    branch = SupervisorSpec("branch", (actor("x", crash_times(99)),), intensity=Intensity(1, 60), backoff=QUICK)
    trace = Trace(tree(actor("a"), branch, intensity=Intensity(2, 600)))
    with pytest.raises(RestartIntensityExceeded):
        async with trace.supervisor:
            await anyio.sleep_forever()
    assert trace.of(Escalated) == ["branch", "branch", "branch", "root"]


async def test_the_body_is_cancelled_when_the_tree_gives_up() -> None:
    """Whoever runs inside of the block does not go on without its actors."""
    spec = tree(actor("a", crash_late(), restart=Restart.PERMANENT), intensity=Intensity(0, 60))
    reached = False

    async def host() -> None:
        nonlocal reached
        async with Supervisor(spec):
            await anyio.sleep(100)
            reached = True

    with pytest.raises(RestartIntensityExceeded):
        await host()
    assert not reached


async def test_a_start_time_out_is_a_crash() -> None:
    """An actor that never gets ready is cancelled and restarted."""
    lives = [0]

    async def sleepy_once(context: Context) -> None:
        lives[0] += 1
        if lives[0] == 1:
            await anyio.sleep_forever()
        await idle(context)

    trace = Trace(tree(actor("a", sleepy_once, start_timeout_sec=7)))
    async with trace.supervisor:
        assert anyio.current_time() == pytest.approx(8.0)
        exited = next(e for e in trace.events if isinstance(e, Exited))
        assert isinstance(exited.error, StartTimeout)
        assert exited.crash is not None
        assert exited.crash.message == "root/a was not ready within 7 s"


async def test_a_child_that_ignores_the_request_is_cancelled_after_its_shutdown_time() -> None:
    """Stop asks first, cancels after the shutdown time."""

    async def deaf(context: Context) -> None:
        context.ready()
        await anyio.sleep_forever()

    async with Supervisor(tree(actor("a", deaf, shutdown_sec=4))):
        left = anyio.current_time()
    assert anyio.current_time() - left == pytest.approx(4)


async def test_a_shutdown_time_of_zero_cancels_at_once() -> None:
    """Actors with nothing to drain cost no time."""

    async def deaf(context: Context) -> None:
        context.ready()
        await anyio.sleep_forever()

    async with Supervisor(tree(actor("a", deaf, shutdown_sec=0))):
        left = anyio.current_time()
    assert anyio.current_time() == left


async def test_stop_now_cuts_a_drain_short() -> None:
    """A second request to stop cancels what is still draining."""

    async def drains(context: Context) -> None:
        await idle(context)
        await anyio.sleep(100)

    trace = Trace(tree(actor("a", drains, shutdown_sec=200)))

    async def second_signal() -> None:
        await anyio.sleep(3)
        trace.supervisor.stop(now=True)

    async with anyio.create_task_group() as group, trace.supervisor:
        left = anyio.current_time()
        group.start_soon(second_signal)
    assert anyio.current_time() - left == pytest.approx(3)


async def test_what_will_not_die_is_reported_and_does_not_hold_up_the_others() -> None:
    """A shielded child is reported as stuck after the kill time; its siblings are stopped all the same."""

    async def undead(context: Context) -> None:
        context.ready()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1000)

    trace = Trace(tree(actor("a"), actor("b", undead, shutdown_sec=1), kill_sec=2))
    async with trace.supervisor:
        left = anyio.current_time()
    stuck = next(e for e in trace.events if isinstance(e, Stuck))
    assert stuck.path == "root/b"
    assert stuck.at - left == pytest.approx(3)
    sibling = next(e for e in trace.events if isinstance(e, Exited) and e.path == "root/a")
    assert sibling.at - left == pytest.approx(3)


async def test_the_root_learns_at_once_of_what_is_stuck_deep_below() -> None:
    """A supervisor whose child will not die is stuck too: nobody above waits for it."""

    async def undead(context: Context) -> None:
        context.ready()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1000)

    leaf = actor("leaf", undead, shutdown_sec=1)
    inner = SupervisorSpec("inner", (leaf,), kill_sec=2)
    trace = Trace(tree(actor("a"), SupervisorSpec("mid", (inner,)), kill_sec=2))
    async with trace.supervisor:
        left = anyio.current_time()
    stopped = next(e for e in trace.events if isinstance(e, Stopped) and e.path == "root")
    assert stopped.at - left == pytest.approx(3)
    assert stopped.stuck == ("root/mid", "root/mid/inner", "root/mid/inner/leaf")


async def test_a_child_that_hangs_in_its_start_and_will_not_die_brings_the_supervisor_down() -> None:
    """An actor never runs twice at once: what cannot be stopped cannot be restarted."""

    async def undead(context: Context) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1000)

    with pytest.raises(ChildStuck, match="root/a"):
        async with Supervisor(tree(actor("a", undead, start_timeout_sec=1))):
            pass


async def test_a_factory_that_raises_is_a_crash() -> None:
    """Making the actor is part of its life."""

    def broken() -> Scripted:
        raise Boom("no such file")

    with pytest.raises(RestartIntensityExceeded, match="no such file"):
        async with Supervisor(tree(ActorSpec("a", broken), intensity=Intensity(1, 60))):
            pass


async def test_two_that_fail_at_once_are_both_restarted() -> None:
    """Neither crash hides the other."""
    trace = Trace(tree(actor("a", crash_late()), actor("b", crash_late()), actor("c")))
    async with trace.supervisor:
        await anyio.sleep(60)
        assert trace.restarts() == {"a": 1, "b": 1, "c": 0}


async def test_a_slow_drain_of_one_does_not_delay_the_restart_of_another() -> None:
    """Children of one_for_one are independent while they come and go."""

    async def drains(context: Context) -> None:
        await idle(context)
        await anyio.sleep(100)

    trace = Trace(tree(actor("a", drains, shutdown_sec=200), actor("b", crash_late())))
    async with trace.supervisor, anyio.create_task_group() as group:
        group.start_soon(trace.supervisor.restart, "root/a")
        await anyio.sleep(10)
        assert trace.phase("a") is Phase.STOPPING
        assert trace.restarts()["b"] == 1


async def test_restart_from_outside_touches_the_named_child_alone() -> None:
    """`restart` returns when the child is up again, and counts as no crash."""
    trace = Trace(tree(actor("a"), actor("b"), strategy=Strategy.ONE_FOR_ALL))
    async with trace.supervisor:
        await trace.supervisor.restart("root/a")
        assert trace.restarts() == {"a": 1, "b": 0}
        assert trace.phase("a") is Phase.RUNNING
        assert trace.of(Restarting) == []


async def test_restart_reaches_into_branches_and_restarts_whole_branches() -> None:
    """A path names an actor below a supervisor, or the supervisor itself."""
    trace = Trace(tree(SupervisorSpec("branch", (actor("x"), actor("y"))), actor("z")))
    async with trace.supervisor:
        await trace.supervisor.restart("root/branch/x")
        assert trace.restarts() == {"branch": 0, "branch/x": 1, "branch/y": 0, "z": 0}
        await trace.supervisor.restart("root/branch")
        assert trace.restarts() == {"branch": 1, "branch/x": 0, "branch/y": 0, "z": 0}


async def test_restart_ends_the_pause_of_a_child_that_waits() -> None:
    """Somebody who mended the cause does not have to sit out the backoff."""
    trace = Trace(tree(actor("a", crash_late(), backoff=Backoff(1000, 1, 1000, 0))))
    async with trace.supervisor:
        await anyio.sleep(10)
        assert trace.phase("a") is Phase.WAITING
        await trace.supervisor.restart("root/a")
        assert anyio.current_time() < 20
        assert trace.phase("a") is Phase.RUNNING


async def test_restart_brings_back_a_child_that_was_done() -> None:
    """A transient child that finished can be asked to run again."""
    trace = Trace(tree(actor("a", finish, restart=Restart.TRANSIENT)))
    async with trace.supervisor:
        await trace.supervisor.restart("root/a")
        assert trace.of(Started) == ["a", "a"]


async def test_restart_of_an_unknown_actor_lists_the_known_ones() -> None:
    """The error helps to type it right."""
    async with Supervisor(tree(actor("alpha"))) as supervisor:
        with pytest.raises(NoSuchActor, match="root/alpha"):
            await supervisor.restart("root/alhpa")


async def test_dynamic_children_come_and_go_without_a_trace() -> None:
    """Thousands of temporary children leave no record behind."""
    runs = Children()
    done = [0]

    async def job(context: Context) -> None:
        context.ready()
        await anyio.sleep(1)
        done[0] += 1

    spec = tree(SupervisorSpec("runs", dynamic=runs))
    async with Supervisor(spec) as supervisor:
        for n in range(2000):
            runs.start(actor(f"run:{n}", job, restart=Restart.TEMPORARY))
        await anyio.sleep(0.5)
        assert len(list(supervisor.status().walk())) == 2002
        await anyio.sleep(1)
        assert len(list(supervisor.status().walk())) == 2
    assert done[0] == 2000


async def test_dynamic_children_are_stopped_all_at_once() -> None:
    """A drain of a thousand runs takes as long as the slowest, not as long as the sum."""
    runs = Children()

    async def job(context: Context) -> None:
        await idle(context)
        await anyio.sleep(3)

    async with Supervisor(tree(SupervisorSpec("runs", dynamic=runs))):
        for n in range(100):
            runs.start(actor(f"run:{n}", job, restart=Restart.TEMPORARY))
        await anyio.sleep(1)
        left = anyio.current_time()
    assert anyio.current_time() - left == pytest.approx(3)


async def test_a_crash_of_a_temporary_dynamic_child_harms_nobody() -> None:
    """It is an event, and the record is gone."""
    runs = Children()
    trace = Trace(tree(SupervisorSpec("runs", dynamic=runs), intensity=Intensity(0, 60)))
    async with trace.supervisor:
        runs.start(actor("run:1", crash_times(1), restart=Restart.TEMPORARY))
        await anyio.sleep(1)
        assert trace.of(Exited) == ["runs/run:1"]
        assert trace.of(Restarting) == []


async def test_a_dynamic_child_that_is_transient_is_restarted() -> None:
    """The same policy as for static children."""
    runs = Children()
    trace = Trace(tree(SupervisorSpec("runs", dynamic=runs)))
    async with trace.supervisor:
        runs.start(actor("run:1", crash_times(1), restart=Restart.TRANSIENT))
        await anyio.sleep(10)
        assert trace.restarts()["runs/run:1"] == 1
        await trace.supervisor.restart("root/runs/run:1")
        assert trace.restarts()["runs/run:1"] == 2


async def test_the_handle_of_dynamic_children_outlives_their_supervisor() -> None:
    """It says NotRunning while the supervisor is away and works again afterwards."""
    runs = Children()
    with pytest.raises(NotRunning):
        runs.start(actor("run:0"))
    async with Supervisor(tree(SupervisorSpec("runs", dynamic=runs))) as supervisor:
        runs.start(actor("run:1"))
        with pytest.raises(DuplicateChild, match="run:1"):
            runs.start(actor("run:1"))
        await supervisor.restart("root/runs")
        runs.start(actor("run:1"))
    with pytest.raises(NotRunning):
        runs.start(actor("run:2"))


async def test_a_body_that_raises_drains_the_tree_and_keeps_its_own_error() -> None:
    """The host's error is not wrapped into an exception group."""
    trace = Trace(tree(actor("a")))
    with pytest.raises(Boom, match="host"):
        async with trace.supervisor:
            raise Boom("host")
    assert trace.of(Exited) == ["a"]


async def test_a_cancelled_body_stops_now_in_reverse_order() -> None:
    """A host that cancels does not wait for drains; the order holds all the same."""

    async def drains(context: Context) -> None:
        await idle(context)
        await anyio.sleep(100)

    trace = Trace(tree(*(actor(n, drains, shutdown_sec=200) for n in "abc")))
    with anyio.move_on_after(5) as scope:
        async with trace.supervisor:
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert trace.of(Exited) == ["c", "b", "a"]
    assert anyio.current_time() == pytest.approx(5)


async def test_a_cancel_while_the_tree_starts_leaves_nothing_behind() -> None:
    """Also while a child is restarted during the start."""

    async def never_ready(context: Context) -> None:
        await anyio.sleep_forever()

    trace = Trace(tree(actor("a"), actor("b", crash_times(3)), actor("c", never_ready, start_timeout_sec=1000)))
    with anyio.move_on_after(50):
        async with trace.supervisor:
            pytest.fail("the tree cannot be up")
    assert trace.of(Exited)[-3:] == ["c", "b", "a"]


async def test_stop_during_the_start_is_not_an_error_of_a_child() -> None:
    """A signal that comes early ends the start; the block says that the tree never was up."""

    async def slow(context: Context) -> None:
        await anyio.sleep(10)
        await idle(context)

    trace = Trace(tree(actor("a"), actor("b", slow)))

    async def early() -> None:
        await anyio.sleep(1)
        trace.supervisor.stop()

    async def start() -> None:
        with pytest.raises(NotRunning):
            await trace.supervisor.__aenter__()

    async with anyio.create_task_group() as group:
        group.start_soon(early)
        group.start_soon(start)
    assert trace.of(Exited) == ["b", "a"]


async def test_status_shows_the_last_crash_and_the_mailbox() -> None:
    """What `actors` needs: phase, since when, restarts, crash with its place, depth."""
    box = Channel[int]("box", capacity=5)
    async with Supervisor(tree(actor("a", crash_late(), mailboxes=(box,)))) as supervisor:
        await box.send(1)
        await box.send(2)
        await anyio.sleep(10)
        status = supervisor.status().children[0]
    assert status.phase is Phase.RUNNING
    assert status.restarts == 1
    assert status.mailbox == 2
    assert status.last_crash is not None
    assert (status.last_crash.type, status.last_crash.message) == ("Boom", "late")
    assert status.last_crash.where.endswith("in body")


async def test_an_actor_knows_its_own_path() -> None:
    """Logs carry it, on every line that comes from an actor's task."""
    seen: list[str | None] = []

    async def look(context: Context) -> None:
        seen.append(current_path.get())
        await idle(context)

    async with Supervisor(tree(SupervisorSpec("branch", (actor("x", look),)))):
        seen.append(current_path.get())
    assert seen == ["root/branch/x", None]


async def test_a_supervisor_runs_once() -> None:
    """A tree that has ended is not started again; make a new one."""
    supervisor = Supervisor(tree(actor("a")))
    async with supervisor:
        pass
    with pytest.raises(NotRunning, match="make a new one"):
        async with supervisor:
            pass


async def test_an_hour_of_heartbeats_crashes_and_backoff() -> None:
    """Eight actors that beat every second and crash now and then, for an hour of virtual time."""
    beats = [0]

    def beating(every: int) -> Body:
        async def body(context: Context) -> None:
            context.ready()
            for _ in range(every):
                with context.until_stopping():
                    await anyio.sleep(1)
                if context.stopping.is_set():
                    return
                beats[0] += 1
            raise Boom(f"after {every} beats")

        return body

    trace = Trace(tree(*(actor(f"a{n}", beating(100 + 31 * n)) for n in range(8)), intensity=Intensity(20, 60)))
    async with trace.supervisor:
        await anyio.sleep(3600)
        restarts = trace.restarts()
    assert 28_000 < beats[0] < 28_800
    assert all(count >= 9 for count in restarts.values())
