"""What a run waits for that is not moving: (snapshot, who is there, now) -> the reason. Pages say it in words."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from attrs import frozen

from pyoco_runtime.model.crew import Crew
from pyoco_runtime.model.run import NOTHING, RunSnapshot, RunStatus, TaskStatus
from pyoco_runtime.model.worker import WorkerState


class WaitCode(enum.StrEnum):
    """The reasons; each has a sentence in messages/ui/shared.toml, with the values in it."""

    NO_WORKER = "no_worker"
    NO_FLOW = "no_flow"
    WORKERS_BUSY = "workers_busy"
    QUEUED = "queued"
    STARTING = "starting"
    TASK = "task"
    LOST_WORKER = "lost_worker"
    CANCELLING = "cancelling"


@frozen
class Waiting:
    """The reason, and what its sentence names."""

    code: WaitCode
    values: Mapping[str, str | float | None] = NOTHING


@frozen(kw_only=True)
class Scene:
    """What is known around a run."""

    crew: Crew | None
    """The live workers of its tag; None if there are none."""
    is_known: bool = True
    """False while this process does not know all workers."""
    owner: WorkerState | None = None
    """What the worker does that has the run; None if nothing is known of it."""
    stale_after_sec: float = 30.0


_GONE = frozenset({WorkerState.DISCONNECTED, WorkerState.STOPPED_GRACEFUL})


def waiting_for(run: RunSnapshot, scene: Scene, now: float) -> Waiting | None:
    """Why it is not over yet; None if it is."""
    if run.status.is_terminal:
        return None
    if run.worker_id is not None and _is_lost(run, scene, now):
        return Waiting(WaitCode.LOST_WORKER, {"worker_id": run.worker_id, "since": run.heartbeat_at})
    is_queued = run.worker_id is None and run.status is not RunStatus.RUNNING
    if is_queued and scene.is_known and scene.crew is None:
        return Waiting(WaitCode.NO_WORKER, {"tag": run.tag})  # also to be cancelled it needs one
    if run.is_cancel_requested:
        return Waiting(WaitCode.CANCELLING, {"since": run.cancel_requested_at, "by": run.cancel_requested_by})
    if run.status is RunStatus.PENDING:
        return _in_the_queue(run, scene)
    return _in_its_hands(run)


def _is_lost(run: RunSnapshot, scene: Scene, now: float) -> bool:
    is_silent = run.heartbeat_at is not None and now - run.heartbeat_at > scene.stale_after_sec
    return is_silent or scene.owner in _GONE


def _in_the_queue(run: RunSnapshot, scene: Scene) -> Waiting:
    crew = scene.crew
    if not scene.is_known or crew is None:
        return Waiting(WaitCode.QUEUED, {"tag": run.tag})
    flows = crew.offered.flows
    if run.workflow_yaml_sha256 is None and flows is not None and run.flow_name not in flows:
        return Waiting(WaitCode.NO_FLOW, {"tag": run.tag, "flow": run.flow_name})
    return Waiting(WaitCode.QUEUED if crew.has_room else WaitCode.WORKERS_BUSY, {"tag": run.tag})


def _in_its_hands(run: RunSnapshot) -> Waiting:
    """Of the tasks that run, the one that has taken the longest."""
    running = [name for name, status in run.tasks.items() if status is TaskStatus.RUNNING]
    since = {name: record.started_at for name in running if (record := run.task_records.get(name)) is not None}
    if not running:
        return Waiting(WaitCode.STARTING, {"worker_id": run.worker_id, "since": run.start_time})
    task = min(running, key=lambda name: since.get(name) or float("inf"))
    return Waiting(WaitCode.TASK, {"task": task, "since": since.get(task)})
