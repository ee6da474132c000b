"""What the reconciler decides: whether a run is lost, and what becomes of a job that nobody will get any more."""

from __future__ import annotations

from attrs import evolve, frozen

from pyoco_runtime.model.dead_letter import DeadLetter, Reason, letter_about
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import cancelled, failed

SEARCH_SEC = 120.0  # QueueInspector.find sees what was published within so much after the time that it is given
SEARCHES = (0, -1, 1, -2, 2, -3)  # in that unit: the submitter's clock and the server's may differ by five minutes

_USED_UP = (
    "max_deliver_exceeded: the queue has delivered the job as often as it may, and no worker brought it to an end"
)


@frozen(kw_only=True)
class Limits:
    """When the reconciler looks, and how often."""

    pending_sec: float = 60.0
    """How long a run may wait without a sign before somebody looks for its job."""
    silent_sec: float = 30.0
    """How long a running run may show no sign of life: max(30, 3 * run_heartbeat_interval)."""
    longest_pause_sec: float = 600.0
    """A run whose job is there is looked at less and less often, down to this."""
    round_sec: float = 15.0
    """The least time between two rounds of looking; more than the feed needs to notice that it is deaf."""
    looks: int = 15
    """How many runs are looked at in one round."""
    stuck_sec: float = 300.0
    """How often leftovers are asked for while there are open runs."""
    stuck_gap_sec: float = 60.0
    """The least time between two such questions."""
    letter_grace_sec: float = 60.0
    """How long whoever ended a run may take for its letter and for the clean-up."""

    def patience_sec(self, status: RunStatus) -> float:
        """How long a run of that status may be as it is before somebody looks."""
        return self.pending_sec if status is RunStatus.PENDING else self.silent_sec

    def pause_sec(self, status: RunStatus, looks: int) -> float:
        """How long to wait after so many looks that found nothing wrong."""
        return min(self.longest_pause_sec, self.patience_sec(status) * 2.0 ** min(looks - 1, 30))


# -- where a job would be ---------------------------------------------------------------------------------------------


@frozen
class ByNumber:
    """The message that the last attempt answered."""

    seq: int


@frozen
class ByTime:
    """The messages of that tag around those times."""

    tag: str
    times: tuple[float, ...]


Place = ByNumber | ByTime


def places_of(seq: int | None, tag: str | None, submitted_at: float | None) -> tuple[Place, ...]:
    """Where the job of a run can be; it is lost only if it is in none of them. None: that can never be told."""
    found: list[Place] = []
    if seq is not None:
        found.append(ByNumber(seq))
    if tag and submitted_at is not None:
        found.append(ByTime(tag, tuple(submitted_at + step * SEARCH_SEC for step in SEARCHES)))
    return tuple(found)


# -- what becomes of them ---------------------------------------------------------------------------------------------


@frozen
class End:
    """Write this snapshot; then the letter; then the leftover, if there is one, can go."""

    snapshot: RunSnapshot
    letter: DeadLetter


@frozen
class Discard:
    """Take the leftover off the queue, once the letter is stored if there is one."""

    letter: DeadLetter | None = None


@frozen
class Wait:
    """Look again later."""

    why: str


def on_missing(snapshot: RunSnapshot, now: float) -> End | None:
    """What to write to a run whose job is not on the queue; None if it is over.

    The snapshot must have been read after the queue was looked at: a worker writes the end before its ack.
    """
    if snapshot.status.is_terminal:
        return None
    if snapshot.status is RunStatus.PENDING:
        error = "lost_job: the run was accepted, but its job is not on the queue; submit it again"
    else:
        whose = f"worker {snapshot.worker_id}" if snapshot.worker_id else "its worker"
        error = f"lost_delivery: {whose} gives no sign of life, and the job is not on the queue any more"
    return _ended(snapshot, error, Reason.LOST_JOB, None, now)


@frozen
class Leftover:
    """A job whose deliveries are used up."""

    tag: str
    subject: str
    job: Job | InvalidJob


def on_leftover(
    leftover: Leftover, found: RunSnapshot | None, now: float, *, is_quiet: bool, has_other: bool, grace_sec: float
) -> End | Discard | Wait:
    """What becomes of a leftover, given the snapshot of its run.

    `is_quiet`: nobody has written to the run for a while. `has_other`: the run has another job on the queue.
    """
    if found is None:
        return Discard(_orphan(leftover, now))
    if found.status.is_terminal:
        return _after_the_end(leftover, found, now, grace_sec)
    if has_other:
        return Discard()
    if not is_quiet:
        return Wait("somebody still writes to the run")  # its last worker lives, and has only lost its delivery
    return _ended(found, _USED_UP, Reason.MAX_DELIVER_EXCEEDED, leftover, now)


def _after_the_end(leftover: Leftover, found: RunSnapshot, now: float, grace_sec: float) -> Discard | Wait:
    if found.error != _USED_UP:
        return Discard()  # an ack that was lost
    # a reconciler ended it: either it is about to clean up, or it died before
    if found.end_time is not None and abs(now - found.end_time) < grace_sec:
        return Wait("another reconciler has just ended the run")
    return Discard(_letter(found, _USED_UP, Reason.MAX_DELIVER_EXCEEDED, leftover, now))


def _ended(snapshot: RunSnapshot, error: str, reason: Reason, leftover: Leftover | None, now: float) -> End:
    if snapshot.is_cancel_requested:
        terminal = evolve(cancelled(snapshot, now), error=error)
    else:
        terminal = failed(snapshot, error, now)
    return End(terminal, _letter(snapshot, error, reason, leftover, now))


def _letter(snapshot: RunSnapshot, error: str, reason: Reason, leftover: Leftover | None, now: float) -> DeadLetter:
    return DeadLetter(
        timestamp=now,
        reason=reason,
        error=error,
        run_id=snapshot.run_id,
        flow_name=snapshot.flow_name,
        tag=leftover.tag if leftover else snapshot.tag,
        tags=snapshot.tags,
        tenant_id=snapshot.tenant_id,
        api_key_id=snapshot.api_key_id,
        worker_id=snapshot.worker_id,
        num_delivered=snapshot.attempt.delivery if snapshot.attempt else None,
        subject=leftover.subject if leftover else None,
    )


def _orphan(leftover: Leftover, now: float) -> DeadLetter:
    if isinstance(leftover.job, InvalidJob):
        reason, error = Reason.INVALID_JOB, leftover.job.problem
    else:
        reason, error = Reason.ORPHANED_JOB, "the deliveries of the job are used up, and its run has no snapshot"
    return letter_about(leftover.job, reason, error, now=now, tag=leftover.tag, subject=leftover.subject)
