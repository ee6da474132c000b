"""How a run looks over HTTP."""

from __future__ import annotations

from typing import Any

from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.run_summary import RunSummary
from pyoco_runtime.model.wire import snapshot_json
from pyoco_runtime.model.worker import WorkerRecord, WorkerState

ALL = frozenset({"all", "full"})
RECORDS = ALL | {"records", "task_records"}
ALIVE = frozenset({WorkerState.RUNNING, WorkerState.IDLE})


def whole_run(snapshot: RunSnapshot, include: frozenset[str]) -> dict[str, Any]:
    """A snapshot, with its task records if they are asked for."""
    shown = snapshot_json(snapshot)
    shown["submitted_by"] = None if snapshot.api_key_id is None else f"api_key:{snapshot.api_key_id}"
    if include.isdisjoint(RECORDS):
        shown.pop("task_records", None)
        shown.pop("task_records_truncated", None)
    return shown


def tasks_of(snapshot: RunSnapshot) -> dict[str, Any]:
    """The tasks of a run and what is known of them."""
    shown = snapshot_json(snapshot)
    keys = ("run_id", "flow_name", "status", "tasks", "task_records")
    return {**{key: shown[key] for key in keys}, "task_records_truncated": snapshot.task_records_truncated}


def summary(run: RunSummary) -> dict[str, Any]:
    """An item of a list. `start_time`, `end_time` and `revision` are ours."""
    return {
        "run_id": run.run_id,
        "flow_name": run.flow_name,
        "tag": run.tag,
        "tags": run.tags,
        "tenant_id": run.tenant_id,
        "api_key_id": run.api_key_id,
        "status": run.status,
        "updated_at": run.updated_at,
        "heartbeat_at": run.heartbeat_at,
        "worker_id": run.worker_id,
        "error": run.error,
        "workflow_yaml_sha256": run.workflow_yaml_sha256,
        "start_time": run.start_time,
        "end_time": run.end_time,
        "revision": run.revision,
    }


def owner(record: WorkerRecord | None, state: WorkerState | None) -> dict[str, Any]:
    """What a run shows of the worker that has it; without a record, only that it is not alive."""
    if record is None or state is None:
        return {"worker_alive": False}
    return {
        "worker_alive": state in ALIVE,
        "worker_state": state,
        "worker_heartbeat_at": record.last_heartbeat_at,
        "worker_tags": record.tags,
        "worker_hidden": record.hidden,
    }
