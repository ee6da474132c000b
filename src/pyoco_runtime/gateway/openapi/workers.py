"""The operations on workers."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import FLAG
from pyoco_runtime.gateway.openapi.examples import EVENTS_OF_WORKERS, WORKER
from pyoco_runtime.gateway.openapi.operation import (
    EVENTS,
    TIMEOUT,
    Answer,
    Body,
    Group,
    Link,
    Operation,
    in_path,
    query,
    whole,
)
from pyoco_runtime.gateway.openapi.runs import BEHIND
from pyoco_runtime.gateway.openapi.shape import choice, ref
from pyoco_runtime.model.worker import WorkerState

_LIST = Operation(
    name="listWorkers",
    method="get",
    path="/workers",
    title="List workers",
    text="The newest `last_seen_at` first. Of other tenants' runs not even the ids are shown.",
    parameters=(
        query("scope", {**choice(["active", "all"]), "default": "active"}, "`active` is RUNNING and IDLE.", "all"),
        query("state", choice(WorkerState), "Only workers in this state."),
        query("include_hidden", {**FLAG, "default": False}, "Whether hidden ones are listed too."),
        query("limit", whole(1, 500, 100), "How many at most."),
    ),
    answer=Answer(
        text="The workers.",
        shape={"type": "array", "items": ref("Worker")},
        example=[WORKER],
        headers=BEHIND,
        links=(Link("worker_id", "/0/worker_id", ("hideWorker",)),),
    ),
    refusals=(refusal.BAD_WORKERS, refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_HIDE = Operation(
    name="hideWorker",
    method="patch",
    path="/workers/{worker_id}",
    title="Hide a worker, or show it again",
    text="It concerns the display only, and survives the worker's own updates.",
    parameters=(in_path("worker_id", {"type": "string", "minLength": 1}, "The id of the worker.", "worker-1"),),
    body=Body(shape=ref("Hidden"), example={"hidden": True}),
    answer=Answer(
        text="It is done.",
        shape=ref("WorkerHidden"),
        example={"worker_id": "worker-1", "hidden": True, "updated_at": 1795011221.5},
    ),
    refusals=(refusal.BAD_WORKERS, refusal.NO_WORKER, refusal.NO_PATH, refusal.BODY_TOO_LARGE, refusal.NO_NATS),
)

_WATCH = Operation(
    name="watchWorkers",
    method="get",
    path="/workers/watch",
    title="Watch the list of workers",
    text="Server-sent events: `workers` with the whole list at once, `worker` with its record when one comes or "
    "changes, `gone` when one is in the list no more, `heartbeat` after 5 s of silence, `end` when the gateway stops.",
    parameters=(*_LIST.parameters, TIMEOUT),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_WORKERS, media=EVENTS),
    refusals=(refusal.BAD_WORKERS, refusal.BROKEN_QUERY, refusal.NO_NATS),
)

WORKERS = Group("Workers", "Workers take runs by their tags and execute them.", (_LIST, _WATCH, _HIDE))
