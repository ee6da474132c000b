"""Makes docs/reference/wire-formats.md from the code: python tools/wire_formats.py > docs/reference/wire-formats.md."""

from __future__ import annotations

import ast
import enum
import inspect
import json
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from attrs import NOTHING, Factory, asdict, fields, frozen

from pyoco_runtime.jetstream.console import CHANGED, TREE, restart_subject
from pyoco_runtime.jetstream.consumer import ConsumerSettings
from pyoco_runtime.jetstream.key_store import PREFIX
from pyoco_runtime.jetstream.resources import WORK_STREAM, _buckets, _streams
from pyoco_runtime.model.api_key import ApiKeyRecord
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter, Reason, letter_about
from pyoco_runtime.model.house import ActorReport, CrashReport, ProcessReport, RestartAnswer
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.wheel_event import Actor, Source, WheelAction, WheelEvent, wheel_event_to
from pyoco_runtime.model.wire import job_to, key_to, letter_to, snapshot_to, worker_to
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState
from pyoco_runtime.ports import Promise
from pyoco_runtime.settings import Settings
from pyoco_runtime.tree import resource_names

INTRODUCTION = """\
# Wire formats

<!-- Made by `python tools/wire_formats.py`; change that file, or the values in src/pyoco_runtime/model/, instead. -->

What pyoco-runtime keeps in NATS, and what travels there: every stream, bucket, subject, key and field. Who only wants
to submit and watch runs needs [HTTP](http-api.md) and not this page.

- Values are JSON objects in UTF-8. Times are unix seconds, as numbers with a fraction.
- Readers ignore fields that they do not know, and keep them when they write the value again. No field is ever removed
  or renamed. A field that is missing, or null where it has a default, counts as its default.
- Fields marked "ours" are not in the format of pyoco-server 0.5.1, whose programs read and write the same values.
- A known field of the wrong type makes a job invalid, and any other value unreadable (ERR-PYOCO-0034).
- Names below are the defaults. [Settings](settings.md) change most of them, and then for every process alike.
"""

MEANINGS = {
    "Job.run_id": "The run that it asks for; also the message id (`Nats-Msg-Id`).",
    "Job.flow_name": "The flow, by the name that the worker's resolver knows; with a flow.yaml only for display.",
    "Job.tag": "The tag that routes it, the last token of the subject.",
    "Job.submitted_at": "When it was accepted.",
    "Job.tags": "Free words for display and filters.",
    "Job.params": "The params of the run.",
    "Job.tenant_id": "Whose run it is; null without API keys.",
    "Job.api_key_id": "The key that it was submitted with.",
    "Job.workflow_yaml": "The text of the flow.yaml, if the run brings its own.",
    "Job.workflow_yaml_sha256": "Of that text, in hex.",
    "Job.workflow_yaml_bytes": "How long that text is.",
    "Job.snapshot_revision": "Of the snapshot that goes with it: a worker may claim the run over it unread.",
    "RunSnapshot.run_id": "The key, too.",
    "RunSnapshot.flow_name": "As in the job.",
    "RunSnapshot.status": "Where the run is; see [the state machine](../explanation/run-state-machine.md).",
    "RunSnapshot.tag": "As in the job.",
    "RunSnapshot.tags": "As in the job.",
    "RunSnapshot.tenant_id": "As in the job.",
    "RunSnapshot.api_key_id": "As in the job.",
    "RunSnapshot.params": "As in the job.",
    "RunSnapshot.tasks": "The status of each task, by its name.",
    "RunSnapshot.task_records": "What is known about each task, by its name; see below.",
    "RunSnapshot.task_records_truncated": "The snapshot was too large: something was left out of `task_records`.",
    "RunSnapshot.worker_id": "Who executes it, or did last.",
    "RunSnapshot.start_time": "When the latest attempt began.",
    "RunSnapshot.end_time": "When the run ended.",
    "RunSnapshot.heartbeat_at": "The last sign of life of whoever executes it.",
    "RunSnapshot.updated_at": "The last write.",
    "RunSnapshot.error": "Why it failed, in a line.",
    "RunSnapshot.cancel_requested_at": "When somebody first asked for a cancel.",
    "RunSnapshot.cancel_requested_by": "Who: `api_key:<key_id>`; null without API keys.",
    "RunSnapshot.workflow_yaml_sha256": "As in the job. The text itself is not in the snapshot.",
    "RunSnapshot.workflow_yaml_bytes": "As in the job.",
    "RunSnapshot.attempt": "Who may write: an execution that finds a newer attempt here has lost the run.",
    "RunSnapshot.graph": "How its tasks hang together: nodes and edges, for whoever draws it.",
    "RunSnapshot.submitted_at": "When it was accepted.",
    "TaskRecord.state": "Where the task is.",
    "TaskRecord.started_at": "When it began; of a task that ran several times, the last time.",
    "TaskRecord.ended_at": "When it ended.",
    "TaskRecord.duration_ms": "How long it took, in milliseconds.",
    "TaskRecord.error": "What it raised, in a line.",
    "TaskRecord.traceback": "Where it raised.",
    "TaskRecord.inputs": "What it was called with. What is not JSON is stored as its repr, here and below.",
    "TaskRecord.output": "What it returned.",
    "TaskRecord.artifacts": "What it saved as artifacts.",
    "TaskRecord.stdout": "The end of what it printed, 16 KiB at most.",
    "TaskRecord.stderr": "The end of what it wrote to stderr, 16 KiB at most.",
    "Attempt.seq": "The job's sequence number in the stream `PYOCO_WORK`.",
    "Attempt.delivery": "How many times it was delivered, this time included.",
    "WorkerRecord.worker_id": "The key, too.",
    "WorkerRecord.instance_id": "Made up at every start of the worker.",
    "WorkerRecord.state": "What it does. `DISCONNECTED` is never written: readers show it after 20 s of silence.",
    "WorkerRecord.hidden": "Set by people, through the gateway, for display; a worker keeps what it finds.",
    "WorkerRecord.tags": "The tags whose runs it takes.",
    "WorkerRecord.last_seen_at": "The last sign of life.",
    "WorkerRecord.last_heartbeat_at": "The same.",
    "WorkerRecord.heartbeat_at": "The same.",
    "WorkerRecord.current_run_id": "A run that it executes.",
    "WorkerRecord.last_run_id": "The run that it ended last.",
    "WorkerRecord.last_run_status": "How that one ended.",
    "WorkerRecord.last_run_started_at": "When that one began.",
    "WorkerRecord.last_run_finished_at": "When that one ended.",
    "WorkerRecord.stopped_at": "When it stopped, if it stopped in order.",
    "WorkerRecord.stop_reason": "Why it stopped.",
    "WorkerRecord.updated_at": "The last write.",
    "WorkerRecord.wheel_sync": "How its last wheel sync went; see below.",
    "WorkerRecord.flows": "The flows that it knows by name; null if it cannot tell.",
    "WorkerRecord.tasks": "The tasks that it offers to every flow.yaml; null if it cannot tell.",
    "WheelSync.enabled": "Whether it installs wheels.",
    "WheelSync.last_result": "`disabled`, `idle`, `ok` or `error`.",
    "WheelSync.last_attempt_at": "The last sync.",
    "WheelSync.last_success_at": "The last one that went well.",
    "WheelSync.last_synced_at": "The same.",
    "WheelSync.last_error": "What went wrong last, 2,000 characters at most.",
    "WheelSync.selected_count": "How many wheels are for it.",
    "WheelSync.updated_count": "How many it installed in the last sync.",
    "WheelSync.removed_count": "How many it removed.",
    "WheelSync.skipped_incompatible_count": "How many do not fit its interpreter.",
    "WheelSync.selected_wheels": "Their names, 50 at most, as in each of these lists.",
    "WheelSync.updated_wheels": "Their names.",
    "WheelSync.removed_wheels": "Their names.",
    "WheelSync.skipped_incompatible": "`wheel_name, package_name, package_version, reason` each.",
    "WheelSync.installed_wheels": "`wheel_name, package_name, package_version` and more of each wheel in use.",
    "DeadLetter.timestamp": "When it was written.",
    "DeadLetter.reason": "Why there is a letter.",
    "DeadLetter.error": "What went wrong, in a line.",
    "DeadLetter.run_id": "The run, as far as known.",
    "DeadLetter.flow_name": "As in the job.",
    "DeadLetter.tag": "As in the job.",
    "DeadLetter.tags": "As in the job.",
    "DeadLetter.tenant_id": "As in the job.",
    "DeadLetter.api_key_id": "As in the job.",
    "DeadLetter.worker_id": "Who wrote it; null if a gateway did.",
    "DeadLetter.num_delivered": "How many times the job was delivered.",
    "DeadLetter.subject": "Where the job was.",
    "DeadLetter.payload": "The first 4,096 bytes of a message that is no job.",
    "DeadLetter.job": "The job as it was sent, so that it can be replayed; null if it is too large or unknown.",
    "ApiKeyRecord.key_id": "What stands between `pyoco_` and the dot of the key.",
    "ApiKeyRecord.tenant_id": "Whose key it is.",
    "ApiKeyRecord.kdf": "How the secret was hashed.",
    "ApiKeyRecord.iterations": "How many rounds of it.",
    "ApiKeyRecord.salt_b64": "The salt, URL-safe base64 without padding.",
    "ApiKeyRecord.hash_b64": "PBKDF2-HMAC-SHA256 of secret and pepper, 32 bytes, written likewise.",
    "ApiKeyRecord.created_at": "When it was made.",
    "ApiKeyRecord.revoked_at": "When it was revoked; null as long as it is good.",
    "ApiKeyRecord.admin": "May look at and change what belongs to no tenant.",
    "Promise.run_id": "The run that was made for it.",
    "Promise.body_sha256": "Of the request's body: the same key with another body is refused.",
    "Promise.created_at": "When it was first used.",
    "WheelEvent.event_id": "Made up.",
    "WheelEvent.occurred_at": "When.",
    "WheelEvent.action": "What was done.",
    "WheelEvent.wheel_name": "The file name of the wheel.",
    "WheelEvent.tags": "Which workers it is for.",
    "WheelEvent.size_bytes": "Its size.",
    "WheelEvent.sha256_hex": "Its digest.",
    "WheelEvent.replace": "Whether it was allowed to replace one of the same name.",
    "WheelEvent.actor": "`tenant_id` and `api_key_id` of whoever did it.",
    "WheelEvent.source": "`remote_addr, x_forwarded_for, x_real_ip, user_agent, host, scheme` of the request.",
    "ProcessReport.process": "Its name: role, host and process id.",
    "ProcessReport.role": "`gateway`, `worker` or `all`.",
    "ProcessReport.host": "Where it runs.",
    "ProcessReport.pid": "Its process id there.",
    "ProcessReport.version": "Of pyoco-runtime.",
    "ProcessReport.started_at": "When it was started.",
    "ProcessReport.tree": "The root of its tree; see below.",
    "ActorReport.path": "Such as `runtime/gateway/http`.",
    "ActorReport.name": "The last part of it.",
    "ActorReport.supervisor": "Whether it has children.",
    "ActorReport.state": "`waiting`, `starting`, `running`, `stopping`, `down`, `done` or `stuck`.",
    "ActorReport.since": "Since when.",
    "ActorReport.restarts": "Lives after the first one.",
    "ActorReport.last_crash": "`type, message, where, at` of its last crash.",
    "ActorReport.mailbox": "How many messages wait for it; null if it reads no channel.",
    "ActorReport.children": "More of these, in start order.",
    "RestartAnswer.path": "The actor that is restarted.",
    "RestartAnswer.problem": "Why none is.",
}
"""What each field means. A field that is not here is explained by the docstring below it."""

OURS = {
    "Job.snapshot_revision",
    "RunSnapshot.attempt",
    "RunSnapshot.submitted_at",
    "RunSnapshot.graph",
    "TaskRecord.stdout",
    "TaskRecord.stderr",
    "WorkerRecord.flows",
    "WorkerRecord.tasks",
    "DeadLetter.job",
    "ApiKeyRecord.admin",
}
"""The fields that pyoco-server 0.5.1 does not know."""

REPLAY = (
    ("replay_of", "text or null", "The run that it is a replay of."),
    ("replay_of_letter", "whole number", "The sequence number of the dead letter that it was replayed from."),
)
MORE: dict[type, tuple[tuple[str, str, str], ...]] = {
    WorkerRecord: (
        ("concurrency", "whole number", "How many runs it executes at the same time."),
        ("current_run_ids", "list of texts", "The runs that it executes."),
    ),
    RunSnapshot: (
        ("cancel_reason", "text", "What whoever cancelled it gave as the reason."),
        *REPLAY,
    ),
    Job: REPLAY,
}
"""Fields of ours that are written beside those of the class; they are not always there."""

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}
SAME = {Actor: "object", Source: "object", CrashReport: "object"}


@frozen
class Part:
    """A section of the page: where the value is, its class, and an example."""

    title: str
    where: str
    kind: type
    example: bytes | None = None
    after: str = ""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([INTRODUCTION, *_resources(), *_subjects(), *(line for part in _parts() for line in _part(part))])


# -- streams, buckets, subjects ---------------------------------------------------------------------------------------


def _resources() -> Iterator[str]:
    names = resource_names(Settings())
    yield "## Streams and buckets\n"
    yield "What is missing is made by whoever needs it first; what exists keeps its settings.\n"
    yield "| what | name | subjects or keys | kept |\n|---|---|---|---|"
    for stream in _streams(names):
        kept = "until the job is done" if stream.name == WORK_STREAM else _limits(stream)
        yield f"| stream | `{stream.name}` | `{(stream.subjects or [''])[0]}` | {kept} |"
    keys = {
        names.runs_bucket: "`<run_id>`",
        names.workers_bucket: "`<worker_id>`",
        names.auth_bucket: f"`{PREFIX}<key_id>`",
        names.wheel_history_bucket: "`<milliseconds, 13 digits>_<event_id>`",
        names.promises_bucket: "SHA-256 of tenant and key, in hex (ours)",
    }
    for bucket in _buckets(names):
        kept = f"{_days(bucket.ttl)} after the last write" if bucket.ttl else "for ever"
        yield f"| KV, history {bucket.history} | `{bucket.bucket}` | {keys[bucket.bucket]} | {kept} |"
    yield f"| object store | `{names.wheels_bucket}` | the file name of a wheel | until it is deleted |"
    consumer = ConsumerSettings()
    yield (
        f"| consumer of `{WORK_STREAM}` | `pyoco_workers_<tag>` | `{names.work_subject_prefix}.<tag>` |"
        f" durable pull, explicit ack, ack wait {consumer.ack_wait_sec:g} s, {consumer.max_deliver} deliveries,"
        f" {consumer.max_ack_pending} in hand |"
    )
    yield "\nA bucket `x` is the stream `KV_x` with the subjects `$KV.x.>`. The object store is `OBJ_pyoco_wheels`.\n"


def _limits(stream: Any) -> str:
    return f"{_days(stream.max_age)}, {stream.max_msgs:,} messages, {stream.max_bytes // 2**20} MiB"


def _days(sec: float | None) -> str:
    days = (sec or 0) / 86_400
    return f"{days:g} day{'' if days == 1 else 's'}"


def _subjects() -> Iterator[str]:
    names = resource_names(Settings())
    yield "## Subjects\n"
    yield "| subject | what travels there |\n|---|---|"
    rows = {
        f"{names.work_subject_prefix}.<tag>": "jobs; their message id (`Nats-Msg-Id`) is the run id",
        f"{names.dlq_subject_prefix}.<tag>": "dead letters; `<tag>` is `unknown` for a message without a usable one",
        TREE: "a request that every process answers with its tree (ours)",
        restart_subject(
            "<process>"
        ): "a request with the name of an actor; the answer says which path is restarted (ours)",
        CHANGED: "the name of a process whose tree has changed (ours)",
        "$SRV.PING, $SRV.INFO, $SRV.STATS": "each process is a NATS micro service called `pyoco-console` (ours)",
    }
    for subject, meaning in rows.items():
        yield f"| `{subject}` | {meaning} |"
    yield ""
    yield (
        "A worker answers a job with `+ACK`, `-NAK` (with a delay after a NATS hiccup) or `+TERM <reason>`, and with"
        " `+WPI` while it executes it. An ack is only sent after the terminal snapshot is stored.\n"
    )


# -- values -----------------------------------------------------------------------------------------------------------


def _parts() -> Iterator[Part]:
    job = Job(run_id="3f0c...", flow_name="hello", tag="default", submitted_at=1795018562.7, params={"name": "Ada"})
    record = TaskRecord(
        state=TaskStatus.SUCCEEDED, started_at=1795018562.9, output="Hello, Ada!", stdout="Hello, Ada!\n"
    )
    run = RunSnapshot(
        run_id="3f0c...",
        flow_name="hello",
        status=RunStatus.RUNNING,
        tag="default",
        tasks={"greet": TaskStatus.SUCCEEDED, "count": TaskStatus.RUNNING},
        task_records={"greet": record},
        attempt=Attempt(17, 1),
    )
    yield Part("Job", "A message on `pyoco.work.<tag>`.", Job, job_to(job))
    yield Part(
        "Run snapshot",
        "The value at `pyoco_runs/<run_id>`. Every write is a compare-and-set on the revision that was read.",
        RunSnapshot,
        snapshot_to(run, 10**6)[0],
        "Over `PYOCO_MAX_RUN_SNAPSHOT_BYTES` (256 KiB) the details of the oldest tasks go first, then the graph, then"
        " the records themselves; `tasks` stays.",
    )
    yield Part("Task record", "In `task_records` of a snapshot.", TaskRecord)
    yield Part(
        "Attempt", "In `attempt` of a snapshot. A greater one is newer: `seq` counts first, then `delivery`.", Attempt
    )
    worker = WorkerRecord(worker_id="w1", instance_id="5b1e...", state=WorkerState.IDLE, tags=("default",))
    yield Part("Worker record", "The value at `pyoco_workers/<worker_id>`.", WorkerRecord, worker_to(worker))
    yield Part("Wheel sync", "In `wheel_sync` of a worker record.", WheelSync)
    letter = letter_about(job, Reason.FLOW_NOT_FOUND, "flow_not_found: hello", now=1795018563.0, tag="default")
    yield Part(
        "Dead letter",
        "A message on `pyoco.dlq.<tag>`. Best effort: the snapshot is the truth.",
        DeadLetter,
        letter_to(letter),
    )
    key = ApiKeyRecord(
        key_id="0123456789abcdef", tenant_id="demo", salt_b64="c2FsdA", hash_b64="aGFzaA", created_at=1795018562.7
    )
    yield Part(
        "API key",
        f"The value at `pyoco_auth/{PREFIX}<key_id>`. The secret is stored nowhere.",
        ApiKeyRecord,
        key_to(key),
    )
    yield Part("Idempotency key", "The value in `pyoco_idempotency` (ours).", Promise)
    event = WheelEvent(
        event_id="9d2a", occurred_at=1795018562.7, action=WheelAction.UPLOAD, wheel_name="demo-1.0-py3-none-any.whl"
    )
    yield Part(
        "Wheel and wheel history",
        "A wheel is an object with the headers `sha256` (hex) and `x-pyoco-wheel-tags` (with commas). What was done"
        " to wheels is in `pyoco_wheel_history`:",
        WheelEvent,
        wheel_event_to(event),
    )
    yield Part("Tree of a process", f"The answer to `{TREE}` (ours).", ProcessReport)
    yield Part("Actor", "In `tree` and in `children`.", ActorReport)
    yield Part(
        "Answer to a restart",
        "One of the two is null.",
        RestartAnswer,
        json.dumps(asdict(RestartAnswer("runtime/link"))).encode(),
    )


def _part(part: Part) -> Iterator[str]:
    yield f"## {part.title}\n"
    yield f"{part.where}\n"
    yield "| field | type | if missing | meaning |\n|---|---|---|---|"
    yield from _rows(part.kind)
    yield ""
    if part.after:
        yield f"{part.after}\n"
    if part.example:
        yield "For example, without the fields that have their defaults:\n"
        yield f"```json\n{_pretty(part.example)}\n```\n"


def _rows(kind: type) -> Iterator[str]:
    hints, docs = get_type_hints(kind), _docstrings(kind)
    for each in fields(kind):
        if each.name == "extra":
            continue  # fields of other writers
        key = f"{kind.__name__}.{each.name}"
        meaning = MEANINGS.get(key) or docs[each.name]
        ours = " Ours." if key in OURS else ""
        yield f"| `{each.name}` | {_type(hints[each.name])} | {_default(each.default)} | {meaning}{ours} |"
    for name, words, meaning in MORE.get(kind, ()):
        yield f"| `{name}` | {words} | not known | {meaning} Ours. |"


def _type(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        words = [_type(each) for each in args if each is not type(None)]
        return " or ".join(words + ["null"] * (type(None) in args))
    if origin is tuple:
        return f"list of {'objects' if _type(args[0]).startswith('object') else 'texts'}"
    if origin is Mapping or origin is dict or hint in SAME:
        return "object"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return ", ".join(f"`{each.value}`" for each in hint)
    return WORDS.get(hint, "object")


def _default(default: Any) -> str:
    if default is NOTHING:
        return "must be there"
    if isinstance(default, Factory):  # type: ignore[arg-type]  # it is a class, whatever its stub says
        return "the defaults"
    if isinstance(default, Mapping):
        return "`{}`"
    return f"`{json.dumps(list(default) if isinstance(default, tuple) else default)}`"


def _docstrings(kind: type) -> dict[str, str]:
    """The texts below the fields, which Python itself throws away."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = str(below.value.value).replace(" (ours)", "").replace("\n", " ")  # type: ignore[attr-defined]
    return found


def _pretty(data: bytes) -> str:
    return json.dumps(_without_defaults(json.loads(data)), indent=2)


def _without_defaults(value: dict[str, Any]) -> dict[str, Any]:
    """Only what says something, so that it can be read."""
    found = {name: _without_defaults(each) if isinstance(each, dict) else each for name, each in value.items()}
    return {name: each for name, each in found.items() if each not in (None, {}, [], False, 0.0, "disabled")}


if __name__ == "__main__":
    sys.stdout.write(page().rstrip("\n") + "\n")
