"""A run: its status, its tasks, and the snapshot that everybody reads."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from pyoco_runtime.model.attempt import Attempt

NOTHING: Mapping[str, Any] = MappingProxyType({})


class RunStatus(enum.StrEnum):
    """Where a run is on its way."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """It never changes again."""
        return self in _TERMINAL


_TERMINAL = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


class TaskStatus(enum.StrEnum):
    """Where a task of a run is on its way."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@frozen(kw_only=True)
class TaskRecord:
    """What is known about one task; of a task that ran several times, about the last time."""

    state: TaskStatus = TaskStatus.PENDING
    started_at: float | None = None
    ended_at: float | None = None
    duration_ms: float | None = None
    error: str | None = None
    traceback: str | None = None
    inputs: Mapping[str, Any] = NOTHING
    output: Any = None
    artifacts: Mapping[str, Any] = NOTHING
    stdout: str | None = None
    """The end of what it printed (ours)."""
    stderr: str | None = None
    """The end of what it wrote to stderr (ours)."""
    extra: Mapping[str, Any] = NOTHING
    """Fields of other writers."""


@frozen(kw_only=True)
class RunSnapshot:
    """The latest state of a run, one KV value."""

    run_id: str
    flow_name: str
    status: RunStatus
    tag: str | None = None
    tags: tuple[str, ...] = ()
    tenant_id: str | None = None
    api_key_id: str | None = None
    params: Mapping[str, Any] = NOTHING
    tasks: Mapping[str, TaskStatus] = NOTHING
    task_records: Mapping[str, TaskRecord] = NOTHING
    task_records_truncated: bool = False
    worker_id: str | None = None
    start_time: float | None = None
    end_time: float | None = None
    heartbeat_at: float | None = None
    updated_at: float | None = None
    error: str | None = None
    cancel_requested_at: float | None = None
    cancel_requested_by: str | None = None
    workflow_yaml_sha256: str | None = None
    workflow_yaml_bytes: int | None = None
    attempt: Attempt | None = None
    """Who may write to it (ours): an execution that finds a newer one here has lost the run."""
    graph: Mapping[str, Any] | None = None
    """How its tasks hang together, as the engine has told it (ours); see progress.Graph."""
    submitted_at: float | None = None
    """When it was accepted (ours)."""
    extra: Mapping[str, Any] = field(default=NOTHING)
    """Fields of other writers, kept on rewrite."""

    @property
    def is_cancel_requested(self) -> bool:
        """Somebody wants it to stop."""
        return self.status is RunStatus.CANCELLING or (
            self.cancel_requested_at is not None and not self.status.is_terminal
        )


def submission_of(snapshot: RunSnapshot) -> float | None:
    """When the job was published, as far as the snapshot tells."""
    if snapshot.submitted_at is not None:
        return snapshot.submitted_at
    if snapshot.worker_id is not None or snapshot.start_time is not None:
        return None  # a worker that does not know `submitted_at` has written it anew
    # as its submitter wrote it: a cancel moves updated_at, and leaves heartbeat_at
    if snapshot.heartbeat_at is not None:
        return snapshot.heartbeat_at
    return snapshot.updated_at if snapshot.status is RunStatus.PENDING else None
