"""What the gateway answers, as it is in JSON. There may be more fields than these; the published gateway has fewer."""

from __future__ import annotations

from typing import Any, Required, TypedDict


class Submission(TypedDict, total=False):
    """What one item of a batch asks for."""

    flow_name: Required[str]
    params: dict[str, Any] | None
    tag: str | None
    tags: list[str] | None


class Accepted(TypedDict, total=False):
    """A run that is on its way."""

    run_id: Required[str]
    status: Required[str]
    warnings: list[str]


class BatchItem(TypedDict, total=False):
    """What became of one item: a run, or why there is none."""

    run_id: str
    status: str
    detail: Any
    err_id: str | None
    msg_id: str | None


class BatchResult(TypedDict):
    """What became of a batch, in the order of its items."""

    results: list[BatchItem]
    accepted: int
    refused: int


class TaskRecord(TypedDict, total=False):
    """What is known about one task."""

    state: Required[str]
    started_at: float | None
    ended_at: float | None
    duration_ms: float | None
    error: str | None
    traceback: str | None
    inputs: dict[str, Any]
    output: Any
    artifacts: dict[str, Any]
    stdout: str | None
    stderr: str | None


class RunSummary(TypedDict, total=False):
    """A run in a list."""

    run_id: Required[str]
    flow_name: Required[str]
    status: Required[str]
    tag: str | None
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    updated_at: float | None
    heartbeat_at: float | None
    worker_id: str | None
    error: str | None


class Run(RunSummary, total=False):
    """The latest state of a run."""

    params: dict[str, Any]
    tasks: dict[str, str]
    task_records: dict[str, TaskRecord]
    task_records_truncated: bool
    start_time: float | None
    end_time: float | None
    submitted_at: float | None
    cancel_requested_at: float | None
    cancel_requested_by: str | None
    cancel_reason: str
    replay_of: str | None
    replay_of_letter: int
    workflow_yaml_sha256: str | None
    workflow_yaml_bytes: int | None
    worker_alive: bool
    worker_state: str
    worker_heartbeat_at: float
    worker_tags: list[str]
    worker_hidden: bool


class RunPage(TypedDict, total=False):
    """A part of the list of runs."""

    items: Required[list[Run]]
    next_cursor: Required[str | None]
    partial: bool


class RunTasks(TypedDict):
    """The tasks of a run."""

    run_id: str
    flow_name: str
    status: str
    tasks: dict[str, str]
    task_records: dict[str, TaskRecord]
    task_records_truncated: bool


class WatchEvent(TypedDict):
    """A server-sent event as the published client gives it."""

    event: str
    data: Any


class Worker(TypedDict, total=False):
    """A worker record."""

    worker_id: Required[str]
    instance_id: str | None
    state: Required[str]
    hidden: bool
    tags: list[str]
    last_seen_at: float | None
    last_heartbeat_at: float | None
    heartbeat_at: float | None
    current_run_id: str | None
    current_run_ids: list[str]
    last_run_id: str | None
    last_run_status: str | None
    last_run_started_at: float | None
    last_run_finished_at: float | None
    stopped_at: float | None
    stop_reason: str | None
    updated_at: float | None
    wheel_sync: dict[str, Any] | None
    flows: list[str]
    tasks: list[str]


class WorkerHidden(TypedDict):
    """Whether lists leave a worker out."""

    worker_id: str
    hidden: bool
    updated_at: float


class Wheel(TypedDict, total=False):
    """A wheel in the store."""

    name: Required[str]
    size_bytes: int
    bucket: str
    nuid: str
    modified: str | None
    sha256_hex: str | None
    sha256_b64: str | None
    tags: list[str]
    digest: str | None
    mtime: Any


class WheelDeleted(TypedDict):
    """A wheel that is gone."""

    name: str
    deleted: bool


class WheelEvent(TypedDict, total=False):
    """Something that was done to a wheel."""

    event_id: str
    occurred_at: float
    action: Required[str]
    wheel_name: Required[str]
    tags: list[str]
    size_bytes: int | None
    sha256_hex: str | None
    replace: bool | None
    actor: dict[str, str | None]
    source: dict[str, str | None]


class Letter(TypedDict, total=False):
    """A dead letter."""

    seq: Required[int]
    timestamp: float
    reason: Required[str]
    error: str | None
    run_id: str | None
    flow_name: str | None
    tag: str | None
    tags: list[str]
    tenant_id: str | None
    api_key_id: str | None
    worker_id: str | None
    num_delivered: int | None
    subject: str | None
    payload: str | None
    replayable: bool


class LetterPage(TypedDict):
    """A part of the list of dead letters; `before=next_before` asks for the next one."""

    items: list[Letter]
    next_before: int | None


class Replayed(TypedDict):
    """The run that was made from a dead letter."""

    run_id: str
    status: str
    replay_of: int


class LetterDeleted(TypedDict):
    """A dead letter that is gone."""

    seq: int
    deleted: bool


class Crash(TypedDict):
    """The last crash of an actor."""

    type: str
    message: str
    where: str
    at: float


class Actor(TypedDict):
    """One actor or supervisor, and those below it."""

    path: str
    name: str
    supervisor: bool
    state: str
    since: float
    restarts: int
    last_crash: Crash | None
    mailbox: int | None
    children: list[Actor]


class Process(TypedDict):
    """One process of ours on this NATS."""

    process: str
    role: str
    host: str
    pid: int
    version: str
    started_at: float
    tree: Actor


class Restarted(TypedDict):
    """The actor that is restarted, with its whole path."""

    process: str
    actor: str


class Health(TypedDict):
    """That the gateway lives."""

    status: str


class Ready(TypedDict):
    """Whether the gateway can serve: `ready` or `not ready`, and what is missing for it."""

    status: str
    missing: list[str]
