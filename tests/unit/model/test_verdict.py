"""The contract's table of outcomes, row by row."""

from __future__ import annotations

import pytest
from attrs import evolve

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.progress import Completed, FlowNotFound, Raised, Stopped
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import Ack, Term
from pyoco_runtime.model.transition import cancelling, claimed, ended
from pyoco_runtime.model.verdict import Conclude, Execute, Leave, Lost, Verdict, on_conflict, on_delivery, on_ending

JOB = Job(run_id="r", flow_name="f", tag="t", submitted_at=1.0)
PENDING = RunSnapshot(run_id="r", flow_name="f", status=RunStatus.PENDING)
RUNNING = claimed(PENDING, "w", Attempt(5, 1), 10.0)
AGAIN = Attempt(5, 2)
DONE = ended(RUNNING, Completed(), 20.0)


def deliver(
    found: RunSnapshot | None, job: Job | InvalidJob = JOB, attempt: Attempt = AGAIN, *, is_last: bool = False
) -> Verdict:
    return on_delivery(job, found, attempt, is_last=is_last, worker_id="w2", now=30.0)


def test_a_waiting_run_is_claimed() -> None:
    """With our name and our token."""
    verdict = deliver(PENDING)
    assert isinstance(verdict, Execute)
    assert (verdict.snapshot.status, verdict.snapshot.worker_id, verdict.snapshot.attempt) == (
        RunStatus.RUNNING,
        "w2",
        Attempt(5, 2),
    )


def test_a_run_whose_worker_died_is_taken_over() -> None:
    """The newer token wins."""
    assert isinstance(deliver(RUNNING), Execute)


def test_a_run_that_a_peer_executed_is_taken_over() -> None:
    """The peer writes no token."""
    assert isinstance(deliver(evolve(RUNNING, attempt=None)), Execute)


def test_a_delivery_that_the_server_forgot_and_makes_again_gets_a_newer_token() -> None:
    """A killed server counts it a second time; two executions never share a token."""
    verdict = deliver(evolve(RUNNING, attempt=AGAIN))
    assert isinstance(verdict, Execute)
    assert verdict.snapshot.attempt == Attempt(5, 3)
    assert on_conflict(AGAIN, verdict.snapshot) is not None


def test_an_older_delivery_leaves_the_run_alone() -> None:
    """It writes nothing and settles nothing."""
    assert isinstance(deliver(evolve(RUNNING, attempt=Attempt(5, 3))), Leave)


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_terminal_run_is_acked_and_not_run_again(status: RunStatus) -> None:
    """Whatever its end was."""
    assert deliver(evolve(DONE, status=status), is_last=True) == Conclude(Ack())


@pytest.mark.parametrize("found", [PENDING, RUNNING])
def test_a_run_that_is_to_be_cancelled_does_not_start(found: RunSnapshot) -> None:
    """It becomes CANCELLED at once."""
    verdict = deliver(cancelling(found, 12.0, None))
    assert isinstance(verdict, Conclude)
    assert verdict.snapshot is not None
    assert (verdict.snapshot.status, verdict.settlement, verdict.reason) == (RunStatus.CANCELLED, Ack(), None)


def test_the_last_delivery_ends_the_run() -> None:
    """Else the message would stay in the queue for ever."""
    verdict = deliver(RUNNING, is_last=True)
    assert isinstance(verdict, Conclude)
    assert verdict.snapshot is not None
    assert (verdict.snapshot.status, verdict.settlement) == (RunStatus.FAILED, Ack())
    assert verdict.reason is Reason.MAX_DELIVER_EXCEEDED
    assert (verdict.snapshot.error or "").startswith("max_deliver_exceeded")


def test_a_job_without_a_snapshot_is_not_run() -> None:
    """Its submitter was refused."""
    verdict = deliver(None)
    assert isinstance(verdict, Conclude)
    assert (verdict.settlement, verdict.snapshot, verdict.reason) == (
        Term("orphaned_job"),
        None,
        Reason.ORPHANED_JOB,
    )


def test_an_invalid_job_fails_its_run_if_there_is_one() -> None:
    """And is never delivered again."""
    bad = InvalidJob("params: must be an object", b"{}", "r")
    verdict = deliver(PENDING, bad)
    assert isinstance(verdict, Conclude)
    assert verdict.snapshot is not None
    assert (verdict.snapshot.status, verdict.settlement) == (RunStatus.FAILED, Term("invalid_job"))
    assert deliver(None, bad) == Conclude(Term("invalid_job"), None, Reason.INVALID_JOB, bad.problem)
    assert deliver(DONE, bad) == Conclude(Term("invalid_job"), None, Reason.INVALID_JOB, bad.problem)


def test_a_flow_that_ends_well_is_acked() -> None:
    """Without a letter."""
    assert on_ending(RUNNING, Completed(), 20.0) == Conclude(Ack(), DONE)


def test_a_flow_that_raises_is_acked_with_a_letter() -> None:
    """It would raise again."""
    conclusion = on_ending(RUNNING, Raised("boom"), 20.0)
    assert (conclusion.settlement, conclusion.reason, conclusion.error) == (Ack(), Reason.EXECUTION_ERROR, "boom")


def test_an_unknown_flow_is_acked_with_a_letter() -> None:
    """With the contract's words."""
    conclusion = on_ending(RUNNING, FlowNotFound("'x'"), 20.0)
    assert (conclusion.reason, conclusion.error) == (Reason.FLOW_NOT_FOUND, "flow_not_found: 'x'")


@pytest.mark.parametrize("ending", [Completed(), Raised("boom"), Stopped()])
def test_a_cancelled_run_has_no_letter(ending: Completed | Raised | Stopped) -> None:
    """Somebody wanted it."""
    conclusion = on_ending(cancelling(RUNNING, 15.0, None), ending, 20.0)
    assert conclusion.snapshot is not None
    assert (conclusion.snapshot.status, conclusion.reason) == (RunStatus.CANCELLED, None)


def test_after_a_conflict_the_attempt_goes_on_if_it_is_still_its_run() -> None:
    """A cancel by the gateway is no loss."""
    assert on_conflict(Attempt(5, 1), cancelling(RUNNING, 15.0, None)) is None


@pytest.mark.parametrize(
    ("found", "settlement"),
    [
        (None, Term("orphaned_job")),
        (evolve(RUNNING, attempt=Attempt(5, 2)), None),
        (evolve(RUNNING, attempt=Attempt(6, 1)), None),
        (evolve(RUNNING, attempt=None), None),
        (DONE, Ack()),
    ],
)
def test_after_a_conflict_a_lost_run_is_let_go(found: RunSnapshot | None, settlement: Ack | Term | None) -> None:
    """A newer attempt has the say; what is terminal may leave the queue."""
    lost = on_conflict(Attempt(5, 1), found)
    assert isinstance(lost, Lost)
    assert lost.settlement == settlement
