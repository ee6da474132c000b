"""How a snapshot changes: (snapshot, what happened) -> snapshot. Nothing here changes a terminal one."""

from __future__ import annotations

from typing import assert_never

from attrs import evolve

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
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
from pyoco_runtime.model.run import NOTHING, RunSnapshot, RunStatus, TaskRecord, TaskStatus

LOG_LIMIT = 16_384  # characters of a task's output that are kept, from its end


def claimed(snapshot: RunSnapshot, worker_id: str, attempt: Attempt, now: float) -> RunSnapshot:
    """An attempt begins from the start, whatever an earlier one had done."""
    return evolve(
        snapshot,
        status=RunStatus.RUNNING,
        worker_id=worker_id,
        attempt=attempt,
        start_time=now,
        end_time=None,
        heartbeat_at=now,
        updated_at=now,
        error=None,
        tasks=NOTHING,
        task_records=NOTHING,
        task_records_truncated=False,
        graph=None,
    )


def advanced(snapshot: RunSnapshot, progress: Progress) -> RunSnapshot:
    """The flow has come further. How it ended is `ended`'s, because that needs a decision."""
    match progress:
        case FlowStarted():
            return evolve(
                snapshot,
                tasks=dict.fromkeys(progress.tasks, TaskStatus.PENDING),
                task_records={name: TaskRecord() for name in progress.tasks},
                graph=progress.graph,
            )
        case TaskStarted():
            record = TaskRecord(state=TaskStatus.RUNNING, started_at=progress.at)
            return _with(snapshot, progress.task, record)
        case TaskLogged():
            return _with(snapshot, progress.task, _logged(snapshot, progress))
        case TaskEnded():
            changed = _with(snapshot, progress.task, _ended(snapshot, progress))
            return evolve(changed, task_records_truncated=True) if progress.truncated else changed
        case FlowEnded():
            return snapshot
        case _:
            assert_never(progress)


def beaten(snapshot: RunSnapshot, now: float) -> RunSnapshot:
    """A sign of life; nothing else changes."""
    return evolve(snapshot, heartbeat_at=now, updated_at=now)


def cancelling(snapshot: RunSnapshot, at: float, by: str | None) -> RunSnapshot:
    """Somebody wants it to stop; the first request counts, and a terminal run stays as it is."""
    if snapshot.status.is_terminal:
        return snapshot
    if snapshot.cancel_requested_at is not None:
        return evolve(snapshot, status=RunStatus.CANCELLING)
    return evolve(snapshot, status=RunStatus.CANCELLING, cancel_requested_at=at, cancel_requested_by=by, updated_at=at)


def ended(snapshot: RunSnapshot, ending: Ending, now: float) -> RunSnapshot:
    """The terminal snapshot. A run that was asked to stop ends as CANCELLED, however far it came."""
    error = error_of(ending)
    if snapshot.is_cancel_requested or isinstance(ending, Stopped):
        return _terminal(snapshot, RunStatus.CANCELLED, error if isinstance(ending, Raised) else None, now)
    status = RunStatus.COMPLETED if isinstance(ending, Completed) else RunStatus.FAILED
    return _terminal(snapshot, status, error, now)


def failed(snapshot: RunSnapshot, error: str, now: float) -> RunSnapshot:
    """Ended without having been executed to its end, for a reason outside of the flow."""
    return _terminal(snapshot, RunStatus.FAILED, error, now)


def cancelled(snapshot: RunSnapshot, now: float) -> RunSnapshot:
    """Ended because somebody asked for it, before or between attempts."""
    return _terminal(snapshot, RunStatus.CANCELLED, None, now)


def error_of(ending: Ending) -> str | None:
    """What the snapshot and the dead letter say about a bad end."""
    match ending:
        case Completed() | Stopped():
            return None
        case Raised():
            return ending.error
        case FlowNotFound():
            return f"flow_not_found: {ending.error}"
        case Killed():
            return "the run was ended by force"
        case _:
            assert_never(ending)


def _terminal(snapshot: RunSnapshot, status: RunStatus, error: str | None, now: float) -> RunSnapshot:
    if snapshot.status.is_terminal:
        return snapshot
    return evolve(
        _tasks_over(snapshot, now), status=status, error=error, end_time=now, updated_at=now, heartbeat_at=now
    )


def _tasks_over(snapshot: RunSnapshot, now: float) -> RunSnapshot:
    """No task of a run that is over is running or about to run."""
    open_tasks = [n for n, s in snapshot.tasks.items() if s in (TaskStatus.PENDING, TaskStatus.RUNNING)]
    if not open_tasks:
        return snapshot
    records = dict(snapshot.task_records)
    for name in open_tasks:
        record = records.get(name, TaskRecord())
        at = now if record.started_at is not None else None
        records[name] = evolve(record, state=TaskStatus.CANCELLED, ended_at=at)
    tasks = {**snapshot.tasks, **dict.fromkeys(open_tasks, TaskStatus.CANCELLED)}
    return evolve(snapshot, tasks=tasks, task_records=records)


def _with(snapshot: RunSnapshot, task: str, record: TaskRecord) -> RunSnapshot:
    return evolve(
        snapshot,
        tasks={**snapshot.tasks, task: record.state},
        task_records={**snapshot.task_records, task: record},
    )


def _logged(snapshot: RunSnapshot, logged: TaskLogged) -> TaskRecord:
    record = snapshot.task_records.get(logged.task, TaskRecord())
    if logged.stream == "stderr":
        return evolve(record, stderr=_tail(record.stderr, logged.text))
    return evolve(record, stdout=_tail(record.stdout, logged.text))


def _tail(before: str | None, text: str) -> str:
    return ((before or "") + text)[-LOG_LIMIT:]


def _ended(snapshot: RunSnapshot, over: TaskEnded) -> TaskRecord:
    return evolve(
        snapshot.task_records.get(over.task, TaskRecord()),
        state=over.status,
        started_at=over.started_at,
        ended_at=over.ended_at,
        duration_ms=over.duration_ms,
        error=over.error,
        traceback=over.traceback,
        inputs=over.inputs,
        output=over.output,
        artifacts=over.artifacts,
    )
