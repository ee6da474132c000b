"""A dead letter: what became of a job that did not end well."""

from __future__ import annotations

import enum

from attrs import frozen

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob, Job

PAYLOAD_LIMIT = 4096  # bytes of a bad message that the letter repeats


class Reason(enum.StrEnum):
    """Why there is a letter."""

    INVALID_JOB = "invalid_job"
    FLOW_NOT_FOUND = "flow_not_found"
    EXECUTION_ERROR = "execution_error"
    MAX_DELIVER_EXCEEDED = "max_deliver_exceeded"
    ORPHANED_JOB = "orphaned_job"
    LOST_JOB = "lost_job"
    """The run was accepted and its job is gone (ours)."""


@frozen(kw_only=True)
class DeadLetter:
    """One message in the dead letter stream. Best effort: the snapshot is the truth."""

    timestamp: float
    reason: Reason
    error: str | None
    run_id: str | None = None
    flow_name: str | None = None
    tag: str | None = None
    tags: tuple[str, ...] = ()
    tenant_id: str | None = None
    api_key_id: str | None = None
    worker_id: str | None = None
    num_delivered: int | None = None
    subject: str | None = None
    payload: str | None = None
    job: Job | None = None
    """As it was sent, so that it can be replayed (ours); None if it was unreadable or too large, or is unknown."""


def letter_about(
    job: Job | InvalidJob,
    reason: Reason,
    error: str | None,
    *,
    now: float,
    tag: str,
    subject: str | None = None,
    attempt: Attempt | None = None,
    worker_id: str | None = None,
) -> DeadLetter:
    """The letter for this job."""
    valid = job if isinstance(job, Job) else None
    return DeadLetter(
        timestamp=now,
        reason=reason,
        error=error,
        run_id=job.run_id,
        flow_name=job.flow_name,
        tag=tag,
        tags=valid.tags if valid else (),
        tenant_id=valid.tenant_id if valid else None,
        api_key_id=valid.api_key_id if valid else None,
        worker_id=worker_id,
        num_delivered=attempt.delivery if attempt else None,
        subject=subject,
        payload=None if isinstance(job, Job) else job.payload[:PAYLOAD_LIMIT].decode("utf-8", "replace"),
        job=valid,
    )
