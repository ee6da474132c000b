"""What becomes of a delivery: the contract's table of outcomes as pure functions."""

from __future__ import annotations

from typing import assert_never

from attrs import evolve, frozen

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.progress import Completed, Ending, FlowNotFound, Killed, Raised, Stopped
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack, Settlement, Term
from pyoco_runtime.model.transition import cancelled, claimed, ended, error_of, failed


@frozen
class Execute:
    """Write this snapshot, then execute the flow."""

    snapshot: RunSnapshot


@frozen
class Conclude:
    """Write the snapshot if there is one, then settle; with a reason, there is a dead letter too."""

    settlement: Settlement
    snapshot: RunSnapshot | None = None
    reason: Reason | None = None
    error: str | None = None


@frozen
class Leave:
    """Somebody else has the run: write nothing, settle nothing."""

    why: str


Verdict = Execute | Conclude | Leave


def on_delivery(
    job: Job | InvalidJob,
    found: RunSnapshot | None,
    attempt: Attempt,
    *,
    is_last: bool,
    worker_id: str,
    now: float,
) -> Verdict:
    """What to do with a job that has just come, given the stored snapshot of its run."""
    if isinstance(job, InvalidJob):
        return _invalid(job, found, now)
    if found is None:
        error = "the run has no snapshot: its submitter was told that it was not accepted, or it was removed"
        return Conclude(Term(Reason.ORPHANED_JOB), reason=Reason.ORPHANED_JOB, error=error)
    if found.status.is_terminal:
        return Conclude(Ack())
    if found.attempt is not None and found.attempt > attempt:
        return Leave(f"a newer attempt has it: {found.attempt}")
    attempt = attempt.after(found.attempt)
    if found.is_cancel_requested:
        return Conclude(Ack(), cancelled(evolve(found, attempt=attempt, worker_id=worker_id), now))
    if is_last:
        error = f"max_deliver_exceeded: delivered {attempt.delivery} times and never brought to an end"
        return Conclude(Ack(), failed(evolve(found, attempt=attempt), error, now), Reason.MAX_DELIVER_EXCEEDED, error)
    return Execute(claimed(found, worker_id, attempt, now))


def on_ending(snapshot: RunSnapshot, ending: Ending, now: float) -> Conclude:
    """What to do when the flow has ended."""
    terminal = ended(snapshot, ending, now)
    if terminal.status is not RunStatus.FAILED:
        return Conclude(Ack(), terminal)
    match ending:
        case FlowNotFound():
            reason = Reason.FLOW_NOT_FOUND
        case Raised() | Killed() | Completed() | Stopped():
            reason = Reason.EXECUTION_ERROR
        case _:
            assert_never(ending)
    return Conclude(Ack(), terminal, reason, error_of(ending))


@frozen
class Lost:
    """This attempt must not write any more; `settlement` is what is left to say, if anything."""

    why: str
    settlement: Settlement | None = None


def on_conflict(attempt: Attempt, found: RunSnapshot | None) -> Lost | None:
    """Whether this attempt may go on with what somebody else has written in between."""
    if found is None:
        return Lost("the run was removed while it was executed", Term(Reason.ORPHANED_JOB))
    if found.attempt is None:
        return Lost("a program that knows no attempts has taken it over")
    if found.attempt > attempt:
        return Lost(f"a newer attempt has taken it over: {found.attempt}")
    if found.status.is_terminal:
        return Lost(f"somebody else has ended it: {found.status}", Ack())
    return None


def _invalid(job: InvalidJob, found: RunSnapshot | None, now: float) -> Conclude:
    error = f"invalid_job: {job.problem}"
    snapshot = None if found is None or found.status.is_terminal else failed(found, error, now)
    return Conclude(Term(Reason.INVALID_JOB), snapshot, Reason.INVALID_JOB, job.problem)
