"""The reconciler's decisions: which runs are lost, and what becomes of jobs that nobody will get any more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.reconcile import (
    ByNumber,
    ByTime,
    Discard,
    End,
    Leftover,
    Limits,
    Wait,
    on_leftover,
    on_missing,
    places_of,
)
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskStatus, submission_of

NOW = 1000.0
OPEN = [status for status in RunStatus if not status.is_terminal]
OVER = [status for status in RunStatus if status.is_terminal]
LEFTOVER = Leftover("gpu", "pyoco.work.gpu", Job(run_id="r-1", flow_name="flow", tag="gpu", submitted_at=1.0))


def run(status: RunStatus, **fields: Any) -> RunSnapshot:
    return RunSnapshot(**{"run_id": "r-1", "flow_name": "flow", "tag": "gpu", "status": status, **fields})


def clear(found: RunSnapshot | None, leftover: Leftover = LEFTOVER, **facts: Any) -> End | Discard | Wait:
    given = {"is_quiet": True, "has_other": False, "grace_sec": 60.0, **facts}
    return on_leftover(leftover, found, NOW, **given)


# -- a run without a job ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", OVER)
def test_a_run_that_is_over_is_not_lost(status: RunStatus) -> None:
    """A terminal snapshot never changes."""
    assert on_missing(run(status), NOW) is None


@pytest.mark.parametrize(
    ("status", "words"), [(RunStatus.PENDING, "lost_job: "), (RunStatus.RUNNING, "lost_delivery: ")]
)
def test_a_lost_run_fails_with_a_reason(status: RunStatus, words: str) -> None:
    """In the snapshot and in the letter, which says whose run it was."""
    owned = {"tags": ("gpu", "x"), "tenant_id": "t", "api_key_id": "k", "worker_id": "w-1", "attempt": Attempt(7, 2)}
    end = on_missing(run(status, **owned), NOW)
    assert end is not None
    assert end.snapshot.status is RunStatus.FAILED
    assert end.snapshot.end_time == NOW
    assert end.snapshot.error is not None
    assert end.snapshot.error.startswith(words)
    letter = end.letter
    assert (letter.reason, letter.error, letter.timestamp) == (Reason.LOST_JOB, end.snapshot.error, NOW)
    assert (letter.run_id, letter.flow_name, letter.tag, letter.tags) == ("r-1", "flow", "gpu", ("gpu", "x"))
    assert (letter.tenant_id, letter.api_key_id, letter.worker_id, letter.num_delivered) == ("t", "k", "w-1", 2)


@pytest.mark.parametrize("fields", [{"status": RunStatus.CANCELLING}, {"cancel_requested_at": 5.0}])
def test_a_lost_run_that_was_asked_to_stop_is_cancelled(fields: dict[str, Any]) -> None:
    """What was asked for has happened; the reason stands there all the same."""
    end = on_missing(evolve(run(RunStatus.RUNNING), **fields), NOW)
    assert end is not None
    assert end.snapshot.status is RunStatus.CANCELLED
    assert end.snapshot.error is not None
    assert end.letter.reason is Reason.LOST_JOB


def test_no_task_of_a_lost_run_goes_on() -> None:
    """As at every other end."""
    tasks = {"a": TaskStatus.SUCCEEDED, "b": TaskStatus.RUNNING}
    end = on_missing(run(RunStatus.RUNNING, tasks=tasks), NOW)
    assert end is not None
    assert end.snapshot.tasks == {"a": TaskStatus.SUCCEEDED, "b": TaskStatus.CANCELLED}


# -- a leftover -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", OPEN)
def test_the_run_of_a_leftover_ends(status: RunStatus) -> None:
    """FAILED, or CANCELLED if that was asked for, with a letter."""
    end = clear(run(status))
    assert isinstance(end, End)
    assert end.snapshot.status is (RunStatus.CANCELLED if status is RunStatus.CANCELLING else RunStatus.FAILED)
    assert end.snapshot.error is not None
    assert end.snapshot.error.startswith("max_deliver_exceeded: ")
    assert end.letter.reason is Reason.MAX_DELIVER_EXCEEDED
    assert (end.letter.tag, end.letter.subject) == ("gpu", "pyoco.work.gpu")


@pytest.mark.parametrize("status", OPEN)
def test_a_run_that_somebody_still_writes_to_is_left_alone(status: RunStatus) -> None:
    """Its last worker has lost the delivery, and executes it all the same."""
    assert isinstance(clear(run(status), is_quiet=False), Wait)


@pytest.mark.parametrize(("status", "is_quiet"), list(itertools.product(OPEN, (True, False))))
def test_a_run_with_another_job_on_the_queue_is_not_touched(status: RunStatus, is_quiet: bool) -> None:
    """Only the leftover goes."""
    assert clear(run(status), has_other=True, is_quiet=is_quiet) == Discard()


@pytest.mark.parametrize("status", OVER)
def test_a_leftover_of_a_run_that_is_over_goes(status: RunStatus) -> None:
    """An ack was lost; there is nothing to tell."""
    assert clear(run(status, error="boom", end_time=NOW)) == Discard()
    assert clear(run(status)) == Discard()


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.CANCELLING])
def test_the_letter_of_a_reconciler_that_died_before_is_written_by_the_next_one(status: RunStatus) -> None:
    """And not while it may still be at it, whichever of the two clocks is ahead."""
    ended = clear(run(status))
    assert isinstance(ended, End)
    for seconds in (0.0, 59.0, -59.0):
        assert isinstance(clear(evolve(ended.snapshot, end_time=NOW - seconds)), Wait)
    later = clear(evolve(ended.snapshot, end_time=NOW - 60.0))
    assert isinstance(later, Discard)
    assert later.letter == ended.letter


def test_a_leftover_without_a_run_leaves_a_letter() -> None:
    """Nothing else remains of it."""
    discard = clear(None)
    assert isinstance(discard, Discard)
    assert discard.letter is not None
    assert (discard.letter.reason, discard.letter.run_id) == (Reason.ORPHANED_JOB, "r-1")
    invalid = clear(None, Leftover("gpu", "pyoco.work.gpu", InvalidJob("the message is not JSON", b"garbage")))
    assert isinstance(invalid, Discard)
    assert invalid.letter is not None
    assert (invalid.letter.reason, invalid.letter.payload) == (Reason.INVALID_JOB, "garbage")


# -- where to look, and when ------------------------------------------------------------------------------------------


def test_a_job_is_looked_for_wherever_it_can_be() -> None:
    """By its number, and around the time of its submission, for clocks that differ by five minutes; or nowhere."""
    assert places_of(7, None, None) == (ByNumber(7),)
    by_number, by_time = places_of(7, "gpu", 1000.0)
    assert by_number == ByNumber(7)
    assert isinstance(by_time, ByTime)
    assert by_time.tag == "gpu"
    assert by_time.times[0] == 1000.0
    seen = sorted(by_time.times)
    assert all(later - earlier <= 120.0 for earlier, later in itertools.pairwise(seen))
    assert seen[0] <= 700.0
    assert seen[-1] + 120.0 >= 1300.0
    assert places_of(None, "gpu", None) == places_of(None, None, 5.0) == ()


def test_the_time_of_submission_is_taken_from_what_its_submitter_wrote() -> None:
    """Ours says it; the peer's gateway leaves it in heartbeat_at; the peer's worker overwrites it."""
    peer = run(RunStatus.PENDING, heartbeat_at=5.0, updated_at=5.0)
    assert submission_of(run(RunStatus.RUNNING, submitted_at=3.0, worker_id="w", heartbeat_at=9.0)) == 3.0
    assert submission_of(peer) == 5.0
    assert submission_of(evolve(peer, heartbeat_at=None)) == 5.0
    assert submission_of(evolve(peer, status=RunStatus.CANCELLING, updated_at=8.0)) == 5.0
    assert submission_of(evolve(peer, status=RunStatus.CANCELLING, heartbeat_at=None)) is None
    assert submission_of(evolve(peer, status=RunStatus.RUNNING, start_time=6.0)) is None


def test_the_pauses_grow_up_to_their_limit() -> None:
    """Many that wait for long cost little, and none is forgotten."""
    limits = Limits()
    assert [limits.pause_sec(RunStatus.PENDING, looks) for looks in range(1, 7)] == [60, 120, 240, 480, 600, 600]
    assert limits.pause_sec(RunStatus.RUNNING, 1) == 30
    assert limits.pause_sec(RunStatus.CANCELLING, 100_000) == 600
