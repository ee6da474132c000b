"""The runs that are not over, and when each of them is due."""

from __future__ import annotations

import math
import random
from typing import Any

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.open_runs import OpenRuns
from pyoco_runtime.model.reconcile import ByNumber, ByTime, Limits
from pyoco_runtime.model.run import RunSnapshot, RunStatus


def run(run_id: str = "r", status: RunStatus = RunStatus.PENDING, **fields: Any) -> RunSnapshot:
    return RunSnapshot(run_id=run_id, flow_name="flow", tag="gpu", status=status, **fields)


def runs() -> OpenRuns:
    return OpenRuns(Limits(pending_sec=60.0, silent_sec=30.0))


def test_only_runs_that_are_not_over_are_kept() -> None:
    """Memory grows with open runs, not with stored ones."""
    open_runs = runs()
    for number in range(1000):
        open_runs.note(run(f"r-{number}", RunStatus.COMPLETED), number, 0.0)
    open_runs.note(run("a"), 1001, 0.0)
    open_runs.note(run("b", RunStatus.RUNNING), 1002, 0.0)
    open_runs.note(run("c", RunStatus.CANCELLING), 1003, 0.0)
    assert len(open_runs) == 3
    for status, run_id in ((RunStatus.FAILED, "a"), (RunStatus.COMPLETED, "b"), (RunStatus.CANCELLED, "c")):
        open_runs.note(run(run_id, status), 1004, 1.0)
    assert len(open_runs) == 0
    assert open_runs.next_due() == math.inf
    assert open_runs.take_due(10_000.0) is None


def test_a_sign_of_life_begins_the_wait_anew_and_the_same_revision_is_none() -> None:
    """A run is due when its revision has been the same for its patience."""
    open_runs = runs()
    for second in range(100):
        open_runs.note(run(status=RunStatus.RUNNING), second, float(second))
        assert open_runs.take_due(float(second)) is None
    for second in range(100, 129):
        open_runs.note(run(status=RunStatus.RUNNING), 99, float(second))
        assert open_runs.take_due(float(second)) is None
        assert not open_runs.is_quiet("r", 99, float(second))
    assert open_runs.is_quiet("r", 99, 129.0)
    assert not open_runs.is_quiet("r", 98, 129.0)
    assert not open_runs.is_quiet("other", 99, 129.0)
    found = open_runs.take_due(129.0)
    assert found is not None
    assert found.revision == 99
    assert open_runs.take_due(129.0) is None


def test_the_one_that_is_due_for_the_longest_comes_first() -> None:
    """Nobody is passed over for ever."""
    open_runs = runs()
    for number in (3, 1, 2):
        open_runs.note(run(f"r-{number}"), number, float(number))
    assert open_runs.next_due() == 61.0
    order = [open_runs.take_due(1000.0) for _ in range(3)]
    assert [each.run_id for each in order if each] == ["r-1", "r-2", "r-3"]


def test_looks_are_further_and_further_apart_until_there_is_news() -> None:
    """A look that failed does not count."""
    open_runs, now, times = runs(), 0.0, []
    open_runs.note(run(), 1, now)
    for look in range(5):
        now = open_runs.next_due()
        times.append(now)
        found = open_runs.take_due(now)
        assert found is not None
        if look == 1:
            open_runs.put_back(found, now)
        else:
            open_runs.postpone(found, now)
    assert times == [60.0, 120.0, 180.0, 300.0, 540.0]
    assert found is not None
    open_runs.note(run(status=RunStatus.RUNNING), 2, now)
    assert open_runs.next_due() == now + 30.0
    open_runs.postpone(found, now)  # it was about the revision before
    open_runs.put_back(found, now)
    assert open_runs.next_due() == now + 30.0


def test_what_is_not_told_when_all_is_told_anew_is_gone() -> None:
    """It was removed while nobody listened; what is told again keeps its time."""
    open_runs = runs()
    open_runs.note(run("kept"), 1, 0.0)
    open_runs.note(run("gone"), 2, 0.0)
    open_runs.begin_load()
    open_runs.note(run("kept"), 1, 50.0)
    open_runs.note(run("new"), 3, 50.0)
    assert len(open_runs) == 3
    open_runs.end_load()
    assert len(open_runs) == 2
    assert [found.run_id if (found := open_runs.take_due(now)) else None for now in (60.0, 60.0, 110.0)] == [
        "kept",
        None,
        "new",
    ]


def test_what_a_writer_drops_is_remembered() -> None:
    """The peer's worker knows neither attempt nor submitted_at."""
    open_runs = runs()
    open_runs.note(run(submitted_at=5.0, attempt=Attempt(7, 1)), 1, 0.0)
    open_runs.note(run(status=RunStatus.RUNNING, start_time=9.0, heartbeat_at=9.0), 2, 1.0)
    found = open_runs.take_due(1000.0)
    assert found is not None
    by_number, by_time = found.places
    assert by_number == ByNumber(7)
    assert isinstance(by_time, ByTime)
    assert by_time.times[0] == 5.0


def test_the_heap_says_the_same_as_a_search_through_all() -> None:
    """Whatever happens in whatever order."""
    dice = random.Random(7)
    open_runs, due, now = runs(), dict[str, float](), 0.0
    for revision in range(1, 3000):
        now += dice.random() * 10
        run_id = f"r-{dice.randrange(30)}"
        match dice.randrange(4):
            case 0:
                open_runs.forget(run_id)
                due.pop(run_id, None)
            case 1:
                open_runs.note(run(run_id), revision, now)
                due[run_id] = now + 60.0
            case 2:
                open_runs.note(run(run_id, RunStatus.RUNNING), revision, now)
                due[run_id] = now + 30.0
            case _:
                found = open_runs.take_due(now)
                late = {each: at for each, at in due.items() if at <= now}
                assert (found.run_id if found else None) == min(late, key=late.__getitem__, default=None)
                if found is not None:
                    open_runs.postpone(found, now)
                    due[found.run_id] = now + Limits().pause_sec(found.status, found.looks + 1)
        assert len(open_runs) == len(due)
