"""How snapshots change."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowNotFound,
    FlowStarted,
    Killed,
    Progress,
    Raised,
    Stopped,
    TaskEnded,
    TaskLogged,
    TaskStarted,
)
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskStatus
from pyoco_runtime.model.transition import (
    LOG_LIMIT,
    advanced,
    beaten,
    cancelled,
    cancelling,
    claimed,
    ended,
    failed,
)

PENDING = RunSnapshot(run_id="r", flow_name="f", status=RunStatus.PENDING, params={"a": 1}, extra={"x": 1})
RUNNING = claimed(PENDING, "w", Attempt(1, 1), 10.0)
ENDINGS: list[Ending] = [Completed(), Raised("boom"), FlowNotFound("'x'"), Stopped(), Killed()]
TERMINAL = [ended(RUNNING, ending, 20.0) for ending in ENDINGS]


def play(*events: Progress) -> RunSnapshot:
    snapshot = RUNNING
    for event in events:
        snapshot = advanced(snapshot, event)
    return snapshot


def test_a_claim_starts_over() -> None:
    """An earlier attempt's tasks are gone; what the submitter and others wrote stays."""
    earlier = evolve(play(FlowStarted(("a",))), error="lost")
    again = claimed(earlier, "w2", Attempt(1, 2), 30.0)
    assert (again.status, again.worker_id, again.attempt, again.start_time) == ("RUNNING", "w2", Attempt(1, 2), 30.0)
    assert (again.tasks, again.error, again.params, again.extra) == ({}, None, {"a": 1}, {"x": 1})


def test_tasks_are_followed() -> None:
    """From pending to succeeded, with what they printed."""
    snapshot = play(
        FlowStarted(("a", "b")),
        TaskStarted("a", 11.0),
        TaskLogged("a", "stdout", "hello "),
        TaskLogged("a", "stdout", "world"),
        TaskLogged("a", "stderr", "oh"),
        TaskEnded("a", TaskStatus.SUCCEEDED, 11.0, 12.0, 1000.0, output=3, inputs={"x": 1}),
    )
    assert snapshot.tasks == {"a": TaskStatus.SUCCEEDED, "b": TaskStatus.PENDING}
    record = snapshot.task_records["a"]
    assert (record.stdout, record.stderr, record.output, record.duration_ms) == ("hello world", "oh", 3, 1000.0)
    assert not snapshot.task_records_truncated


def test_a_task_that_runs_again_begins_anew() -> None:
    """In a loop the record is of the last time."""
    once = (TaskStarted("a", 1.0), TaskEnded("a", TaskStatus.FAILED, 1.0, 2.0, error="e"))
    record = play(FlowStarted(("a",)), *once, TaskStarted("a", 3.0)).task_records["a"]
    assert (record.state, record.error, record.ended_at) == (TaskStatus.RUNNING, None, None)


def test_long_output_keeps_its_end() -> None:
    """The end is where the error is."""
    snapshot = play(TaskLogged("a", "stdout", "x" * LOG_LIMIT), TaskLogged("a", "stdout", "end"))
    stdout = snapshot.task_records["a"].stdout or ""
    assert len(stdout) == LOG_LIMIT
    assert stdout.endswith("end")


def test_a_value_that_was_too_large_is_told() -> None:
    """The flag of the contract."""
    assert play(TaskEnded("a", TaskStatus.SUCCEEDED, 1.0, 2.0, truncated=True)).task_records_truncated


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        (Completed(), RunStatus.COMPLETED, None),
        (Raised("boom"), RunStatus.FAILED, "boom"),
        (FlowNotFound("'x'"), RunStatus.FAILED, "flow_not_found: 'x'"),
        (Stopped(), RunStatus.CANCELLED, None),
        (Killed(), RunStatus.FAILED, "the run was ended by force"),
    ],
)
def test_each_ending_has_its_status(ending: Ending, status: RunStatus, error: str | None) -> None:
    """As the contract's table says."""
    over = ended(RUNNING, ending, 20.0)
    assert (over.status, over.error, over.end_time, over.updated_at) == (status, error, 20.0, 20.0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_was_asked_to_stop_ends_as_cancelled(ending: Ending) -> None:
    """However far it came."""
    assert ended(cancelling(RUNNING, 15.0, "api_key:k"), ending, 20.0).status is RunStatus.CANCELLED


def test_no_task_of_an_ended_run_is_left_open() -> None:
    """What was running or waiting is cancelled."""
    over = ended(play(FlowStarted(("a", "b")), TaskStarted("a", 11.0)), Raised("boom"), 20.0)
    assert set(over.tasks.values()) == {TaskStatus.CANCELLED}
    assert (over.task_records["a"].ended_at, over.task_records["b"].ended_at) == (20.0, None)


def test_a_heartbeat_changes_nothing_else() -> None:
    """Not the status, and it does not undo a cancel."""
    asked = cancelling(RUNNING, 15.0, None)
    assert beaten(asked, 16.0) == evolve(asked, heartbeat_at=16.0, updated_at=16.0)


def test_the_first_cancel_counts() -> None:
    """A second request does not change its time or who it was."""
    asked = cancelling(cancelling(RUNNING, 15.0, "a"), 18.0, "b")
    assert (asked.cancel_requested_at, asked.cancel_requested_by) == (15.0, "a")


@given(snapshot=st.sampled_from(TERMINAL), ending=st.sampled_from(ENDINGS))
def test_a_terminal_snapshot_never_changes(snapshot: RunSnapshot, ending: Ending) -> None:
    """By no way to an end, and by no cancel."""
    assert ended(snapshot, ending, 99.0) == snapshot
    assert failed(snapshot, "e", 99.0) == snapshot
    assert cancelled(snapshot, 99.0) == snapshot
    assert cancelling(snapshot, 99.0, None) == snapshot
