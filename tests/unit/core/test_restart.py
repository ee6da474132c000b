"""The restart decision and the plans, as pure functions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.core.plan import ALIVE, Phase, Slot, plan_serve, plan_stop
from pyoco_runtime.core.restart import Decision, End, Escalate, Leave, RestartAfter, affected, decide, pause
from pyoco_runtime.core.spec import Backoff, Intensity, Restart, Strategy

times = st.floats(min_value=0, max_value=1e6)
backoffs = st.builds(
    Backoff,
    initial_sec=st.floats(0, 10),
    factor=st.floats(1, 10),
    max_sec=st.floats(0, 100),
    jitter=st.floats(0, 1),
)
intensities = st.builds(Intensity, max_restarts=st.integers(0, 20), within_sec=st.floats(0.001, 1000))
dice = st.floats(0, 1, exclude_max=True)


def decided(**change: object) -> Decision:
    values: dict[str, object] = {
        "restart": Restart.PERMANENT,
        "end": End.CRASHED,
        "lived_sec": 0.0,
        "streak": 0,
        "history": (),
        "intensity": Intensity(3, 60),
        "backoff": Backoff(1, 2, 60, 0),
        "now": 100.0,
        "dice": 0.5,
    }
    return decide(**{**values, **change})  # type: ignore[arg-type]  # the keywords of decide


@pytest.mark.parametrize(
    ("restart", "end", "again"),
    [
        (Restart.PERMANENT, End.CRASHED, True),
        (Restart.PERMANENT, End.NORMAL, True),
        (Restart.TRANSIENT, End.CRASHED, True),
        (Restart.TRANSIENT, End.NORMAL, False),
        (Restart.TEMPORARY, End.CRASHED, False),
        (Restart.TEMPORARY, End.NORMAL, False),
    ],
)
def test_the_restart_policy_is_otps(restart: Restart, end: End, again: bool) -> None:
    """The whole table."""
    assert isinstance(decided(restart=restart, end=end), RestartAfter if again else Leave)


def test_the_intensity_counts_only_what_is_within_the_window() -> None:
    """Three restarts within 60 s are allowed, the fourth escalates; older ones are forgotten."""
    assert decided(history=(39.0, 50.0, 60.0)) == RestartAfter(1.0, 1, (50.0, 60.0, 100.0))
    assert decided(history=(40.0, 50.0, 60.0)) == Escalate(4, 60)


@given(backoff=backoffs, streak=st.integers(0, 10_000), roll=dice)
def test_a_pause_stays_within_its_bounds(backoff: Backoff, streak: int, roll: float) -> None:
    """Never negative, never longer than the maximum with its jitter."""
    assert 0 <= pause(backoff, streak, roll) <= backoff.max_sec * (1 + backoff.jitter) + 1e-9


@given(backoff=backoffs, streak=st.integers(0, 100))
def test_pauses_do_not_shrink_within_a_streak(backoff: Backoff, streak: int) -> None:
    """Without jitter each is at least as long as the one before."""
    assert pause(backoff, streak, 0.5) <= pause(backoff, streak + 1, 0.5) + 1e-9


@given(
    history=st.lists(times, max_size=30).map(sorted),
    intensity=intensities,
    backoff=backoffs,
    later=times,
    lived=times,
    streak=st.integers(0, 50),
    roll=dice,
)
def test_the_decision_follows_from_the_window_alone(
    history: list[float],
    intensity: Intensity,
    backoff: Backoff,
    later: float,
    lived: float,
    streak: int,
    roll: float,
) -> None:
    """It escalates exactly when the window would hold more restarts than allowed, and prunes what is older."""
    now = (history[-1] if history else 0.0) + later
    decision = decided(
        history=history, intensity=intensity, backoff=backoff, now=now, lived_sec=lived, streak=streak, dice=roll
    )
    within = [at for at in history if now - at <= intensity.within_sec]
    if len(within) + 1 > intensity.max_restarts:
        assert decision == Escalate(len(within) + 1, intensity.within_sec)
    else:
        assert isinstance(decision, RestartAfter)
        assert decision.history == (*within, now)
        assert decision.streak == (1 if lived > intensity.within_sec else streak + 1)


@given(strategy=st.sampled_from(Strategy), count=st.integers(1, 10), data=st.data())
def test_who_is_affected(strategy: Strategy, count: int, data: st.DataObject) -> None:
    """The failed one always; all, or those after it, as the strategy says."""
    failed = data.draw(st.integers(0, count - 1))
    expected = {
        Strategy.ONE_FOR_ONE: [failed],
        Strategy.ONE_FOR_ALL: list(range(count)),
        Strategy.REST_FOR_ONE: list(range(failed, count)),
    }
    assert list(affected(strategy, failed, count)) == expected[strategy]


slots = st.lists(
    st.sampled_from(Phase).flatmap(
        lambda phase: (
            st.builds(Slot, st.just(phase), st.just(False), st.booleans())
            if phase in ALIVE
            else st.builds(Slot, st.just(phase), st.just(phase is Phase.DOWN), st.just(False))
        )
    ),
    max_size=6,
)


@given(slots)
def test_a_stop_plan_touches_one_child_the_last_alive(children: list[Slot]) -> None:
    """One at a time, in reverse; finished when nothing is alive, whatever is stuck."""
    plan = plan_stop(children)
    alive = [i for i, slot in enumerate(children) if slot.phase in ALIVE]
    assert plan.start == ()
    assert plan.finished == (not alive)
    stopping = bool(alive) and children[alive[-1]].phase is Phase.STOPPING
    assert plan.stop == (() if stopping or not alive else (alive[-1],))


@given(slots, st.booleans())
def test_a_serve_plan_starts_only_what_is_due_and_stops_only_what_is_recycled(
    children: list[Slot], ordered: bool
) -> None:
    """And in order: at most one at a time, never past an earlier sibling that is on its way up."""
    plan = plan_serve(children, ordered=ordered)
    assert all(children[i].due for i in plan.start)
    assert all(children[i].recycle and children[i].phase is not Phase.STOPPING for i in plan.stop)
    if ordered:
        assert len(plan.start) + len(plan.stop) <= 1
        for i in plan.start:
            assert not any(s.due or s.phase in (Phase.WAITING, Phase.STARTING) for s in children[:i])
    else:
        assert list(plan.start) == [i for i, s in enumerate(children) if s.due]


def test_every_small_ordered_supervisor_makes_progress() -> None:
    """Whenever something is due and nothing is on its way, the plan does something: no supervisor hangs."""
    settled = [Slot(Phase.RUNNING), Slot(Phase.DONE), Slot(Phase.DOWN, due=True), Slot(Phase.RUNNING, recycle=True)]
    for children in itertools.product(settled, repeat=4):
        plan = plan_serve(children, ordered=True)
        assert bool(plan.start or plan.stop) == any(s.due or s.recycle for s in children)
