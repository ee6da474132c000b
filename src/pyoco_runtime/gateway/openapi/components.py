"""What requests and answers consist of: the named schemas of the document."""

from __future__ import annotations

from collections.abc import Mapping

from pyoco_runtime.gateway.openapi.meanings import MEANINGS, OWN_MEANINGS
from pyoco_runtime.gateway.openapi.shape import Shape, choice, fields_of, object_of, or_null, ref
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.house import ActorReport, CrashReport, ProcessReport
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskRecord
from pyoco_runtime.model.run_summary import RunSummary
from pyoco_runtime.model.submission import FLOW_NAME_LIMIT, TAG_LIMIT, TAGS_LIMIT
from pyoco_runtime.model.waiting import WaitCode
from pyoco_runtime.model.wheel_event import Actor, Source, WheelEvent
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState

NAMES: Mapping[type, str] = {
    RunSnapshot: "Run",
    RunSummary: "RunSummary",
    TaskRecord: "TaskRecord",
    Attempt: "Attempt",
    WorkerRecord: "Worker",
    WheelSync: "WheelSync",
    WheelInfo: "Wheel",
    WheelEvent: "WheelEvent",
    Actor: "WheelActor",
    Source: "WheelSource",
    DeadLetter: "Letter",
    ProcessReport: "Process",
    ActorReport: "Actor",
    CrashReport: "Crash",
}
TEXT: Shape = {"type": "string"}
NUMBER: Shape = {"type": "number"}
FLAG: Shape = {"type": "boolean"}
TAG: Shape = {"type": "string", "pattern": f"^[A-Za-z0-9_-]{{1,{TAG_LIMIT}}}$"}
# what cannot be printed is refused too; a pattern can say so of control characters only
_PRINTABLE = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
FLOW_NAME: Shape = {"type": "string", "minLength": 1, "maxLength": FLOW_NAME_LIMIT, "pattern": _PRINTABLE}
_OWNER = ("worker_alive", "worker_state", "worker_heartbeat_at", "worker_tags", "worker_hidden")
_WARNINGS: Shape = {"type": "array", "items": TEXT}
_RECORDS = ("task_records", "task_records_truncated")
_SHOWN = ("submitted_by", "waiting")
_MINUTES: Shape = {"type": "array", "items": {"type": "integer"}}
_KNOWN_MINUTES: Shape = {"type": "array", "items": or_null({"type": "integer"})}
_SECONDS: Shape = {"type": "array", "items": or_null(NUMBER)}


def components() -> dict[str, Shape]:
    """Every schema by its name; each field says what it means."""
    found = {
        **_of_runs(),
        **_of_graphs(),
        **_of_workers(),
        **_of_wheels(),
        **_of_letters(),
        **_of_the_house(),
        **_of_stats(),
    }
    found["Problem"] = _problem()
    return {name: _explained(name, shape) for name, shape in found.items()}


def _of_runs() -> dict[str, Shape]:
    run = fields_of(RunSnapshot, NAMES)
    owner = {
        "worker_alive": FLAG,
        "worker_state": choice(WorkerState),
        "worker_heartbeat_at": NUMBER,
        "worker_tags": {"type": "array", "items": TEXT},
        "worker_hidden": FLAG,
    }
    run["graph"] = or_null(ref("Graph"))
    shown = {"submitted_by": or_null(TEXT), "waiting": or_null(ref("Waiting"))}
    more = {"cancel_reason": TEXT, "replay_of": or_null(TEXT), "replay_of_letter": {"type": "integer"}}
    tasks = {name: run[name] for name in ("run_id", "flow_name", "status", "tasks", *_RECORDS)}
    summary = {"run_id": TEXT, **fields_of(RunSummary, NAMES)}
    for inner in ("position", "job_seq", "submitted_at"):  # for us alone
        del summary[inner]
    page = {"items": {"type": "array", "items": ref("RunOrSummary")}, "next_cursor": or_null(TEXT), "partial": FLAG}
    return {
        "Submission": _submission(),
        "Batch": object_of({"runs": {"type": "array", "minItems": 1, "maxItems": 1000, "items": ref("Submission")}}),
        "Accepted": object_of(
            {"run_id": TEXT, "status": choice([RunStatus.PENDING]), "warnings": _WARNINGS}, optional=("warnings",)
        ),
        "BatchResult": object_of(
            {
                "results": {"type": "array", "items": {"anyOf": [ref("Accepted"), ref("Problem")]}},
                "accepted": {"type": "integer"},
                "refused": {"type": "integer"},
                "warnings": _WARNINGS,
            },
            optional=("warnings",),
        ),
        "Run": object_of({**run, **shown, **more, **owner}, optional=(*_RECORDS, *shown, *more, *_OWNER)),
        "RunSummary": object_of(summary),
        "RunOrSummary": {"anyOf": [ref("Run"), ref("RunSummary")]},
        "RunPage": object_of(page),
        "RunTasks": object_of(tasks),
        "Event": object_of({"id": TEXT, "event": TEXT, "data": TEXT}, optional=("id",)),
        "TaskRecord": object_of(fields_of(TaskRecord, NAMES)),
        "Attempt": object_of(fields_of(Attempt, NAMES)),
    }


def _of_graphs() -> dict[str, Shape]:
    inside = {"task": TEXT, "join": choice(["any"]), "parent": TEXT, "case": TEXT}
    around = {"label": TEXT, "loop": choice(["repeat", "foreach", "until"]), "max": {"type": "integer"}}
    node = {"id": TEXT, "kind": choice(["task", "switch", "loop"]), **inside, **around}
    edge: Shape = {"type": "array", "minItems": 2, "maxItems": 3, "items": TEXT}
    values = dict.fromkeys(("tag", "flow", "task", "worker_id", "by"), or_null(TEXT)) | {"since": or_null(NUMBER)}
    return {
        "Graph": object_of(
            {"nodes": {"type": "array", "items": ref("GraphNode")}, "edges": {"type": "array", "items": edge}}
        ),
        "GraphNode": object_of(node, optional=(*inside, *around)),
        "Waiting": object_of({"code": choice(WaitCode), **values}, optional=values),
    }


def _of_stats() -> dict[str, Shape]:
    flow = {"flow": TEXT, "total": {"type": "integer"}, "p50": or_null(NUMBER), "p95": or_null(NUMBER)}
    minutes = {"count": _MINUTES, "p50_sec": _SECONDS, "p95_sec": _SECONDS}
    stats = {
        "ts": NUMBER,
        "bucket_sec": {"type": "integer"},
        "buckets": {"type": "integer"},
        "start": NUMBER,
        "since": or_null(NUMBER),
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "ended": {"type": "object", "additionalProperties": _MINUTES},
        "flows": {"type": "array", "items": ref("FlowStats")},
        "queue": {"type": "array", "items": ref("TagStats")},
        "queue_visible": FLAG,
    }
    tag = {"tag": TEXT, "waiting": _KNOWN_MINUTES, "in_hand": _KNOWN_MINUTES, "oldest_sec": _SECONDS}
    return {"Stats": object_of(stats), "FlowStats": object_of({**flow, **minutes}), "TagStats": object_of(tag)}


def _submission() -> Shape:
    tags: Shape = {"type": "array", "maxItems": TAGS_LIMIT, "items": {"type": "string", "maxLength": TAG_LIMIT}}
    fields = {"flow_name": FLOW_NAME, "params": or_null({"type": "object"}), "tag": or_null(TAG), "tags": or_null(tags)}
    return object_of(fields, optional=("params", "tag", "tags"))


def _of_workers() -> dict[str, Shape]:
    return {
        "Worker": object_of(fields_of(WorkerRecord, NAMES)),
        "WheelSync": object_of(fields_of(WheelSync, NAMES)),
        "Hidden": object_of({"hidden": FLAG}),
        "WorkerHidden": object_of({"worker_id": TEXT, "hidden": FLAG, "updated_at": NUMBER}),
    }


def _of_wheels() -> dict[str, Shape]:
    return {
        "Wheel": object_of({**fields_of(WheelInfo, NAMES), "sha256_b64": or_null(TEXT)}),
        "WheelEvent": object_of(fields_of(WheelEvent, NAMES)),
        "WheelActor": object_of(fields_of(Actor, NAMES)),
        "WheelSource": object_of(fields_of(Source, NAMES)),
        "WheelDeleted": object_of({"name": TEXT, "deleted": FLAG}),
    }


def _of_letters() -> dict[str, Shape]:
    seq: Shape = {"type": "integer"}
    letter = {"seq": seq, **fields_of(DeadLetter, {**NAMES, Job: "Job"}), "replayable": FLAG}
    del letter["job"]
    page = {"items": {"type": "array", "items": ref("Letter")}, "next_before": or_null(seq)}
    return {
        "Letter": object_of(letter),
        "LetterPage": object_of(page),
        "Replayed": object_of({"run_id": TEXT, "status": choice([RunStatus.PENDING]), "replay_of": seq}),
        "LetterDeleted": object_of({"seq": seq, "deleted": FLAG}),
    }


def _of_the_house() -> dict[str, Shape]:
    return {
        "Process": object_of(fields_of(ProcessReport, NAMES)),
        "Actor": object_of(fields_of(ActorReport, NAMES)),
        "Crash": object_of(fields_of(CrashReport, NAMES)),
        "Restarted": object_of({"process": TEXT, "actor": TEXT}),
        "Health": object_of({"status": choice(["ok"])}),
        "Ready": object_of({"status": choice(["ready"])}),
    }


def _problem() -> Shape:
    detail: Shape = {"anyOf": [TEXT, {"type": "object"}]}
    return object_of({"detail": detail, "err_id": or_null(TEXT), "msg_id": or_null(TEXT)})


def _explained(name: str, shape: Shape) -> Shape:
    own = OWN_MEANINGS.get(name, {})
    explained = {
        field: {**inner, "description": own.get(field) or MEANINGS[field]}
        for field, inner in shape.get("properties", {}).items()
    }
    return {**shape, "properties": explained} if explained else shape
