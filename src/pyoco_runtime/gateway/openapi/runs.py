"""The operations on runs."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import FLOW_NAME, NUMBER, TAG, TEXT
from pyoco_runtime.gateway.openapi.examples import (
    ACCEPTED,
    BATCH_RESULT,
    EVENTS_OF_A_RUN,
    EVENTS_OF_THE_LIST,
    FLOW_YAML,
    RUN,
    RUN_ID,
    RUN_TASKS,
    SUBMISSION,
    SUMMARY,
)
from pyoco_runtime.gateway.openapi.operation import (
    EVENTS,
    FORM,
    Answer,
    Body,
    Group,
    Link,
    Operation,
    Parameter,
    in_path,
    query,
    whole,
)
from pyoco_runtime.gateway.openapi.shape import choice, object_of, ref
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.submission import KEY_LIMIT

RUN_IN_PATH = in_path("run_id", {"type": "string", "minLength": 1}, "The id of the run.", RUN_ID)
INCLUDE = query(
    "include",
    {"type": "array", "items": choice(["records", "full", "all"])},
    "Repeatable. Each of them adds `task_records` and `task_records_truncated`.",
)
IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    shape={"type": "string", "minLength": 1, "maxLength": KEY_LIMIT},
    text="Of requests with the same key and tenant within 24 hours only the first makes a run; all get its id.",
)
LAST_EVENT_ID = Parameter(
    name="Last-Event-ID",
    place="header",
    shape={"type": "string", "pattern": "^[0-9]{1,18}$"},
    text="The `id` of the last event that an earlier stream sent: this one goes on from there.",
)
FILTERS = (
    query("status", choice(RunStatus), "Only runs with this status."),
    query("flow", TEXT, "Only runs of this flow."),
    query("tag", TEXT, "Only runs with this routing tag."),
    query("workflow_yaml_sha256", TEXT, "Only runs of this flow.yaml. Makes the answer a page."),
    query("updated_after", NUMBER, "Only runs that changed after this time. Makes the answer a page."),
)
REPLAYED = {"Idempotent-Replayed": "`true` if the run was made by an earlier request with this `Idempotency-Key`."}
BEHIND = {"X-Pyoco-Behind": "Why the answer may be old: the gateway is just catching up with NATS."}
PARTIAL = {"X-Pyoco-Partial": "`true` if runs that ended long ago have fallen out of the index."}
OF_THE_RUN = (Link("run_id", "/run_id", ("readRun", "readTasks", "watchRun", "cancelRun")),)
_ON_ITS_WAY = Answer(
    text="The run is on its way.", shape=ref("Accepted"), example=ACCEPTED, headers=REPLAYED, links=OF_THE_RUN
)

_SUBMIT = Operation(
    name="submitRun",
    method="post",
    path="/runs",
    title="Submit a run",
    text="The answer comes when the run is stored and its job is in the queue.",
    parameters=(IDEMPOTENCY_KEY,),
    body=Body(shape=ref("Submission"), example=SUBMISSION),
    answer=_ON_ITS_WAY,
    refusals=(refusal.BAD_REQUEST, refusal.BODY_TOO_LARGE, refusal.KEY_REUSED, refusal.NO_NATS),
)
_SUBMIT_YAML = Operation(
    name="submitWorkflow",
    method="post",
    path="/runs/yaml",
    title="Submit a run with its flow.yaml",
    text="The file is checked to its last key, and its graph is compiled. `params` are its `flow.defaults`.",
    parameters=(IDEMPOTENCY_KEY,),
    body=Body(
        media=FORM,
        shape=object_of(
            {
                "workflow": {"type": "string", "format": "binary", "description": "The flow.yaml, as a file."},
                "flow_name": {**FLOW_NAME, "description": "How the run is called."},
                "tag": {**TAG, "description": "Workers with this tag take the run."},
            },
            optional=("tag",),
        ),
        example={"workflow": FLOW_YAML, "flow_name": "hello", "tag": "default"},
    ),
    answer=_ON_ITS_WAY,
    refusals=(refusal.BAD_REQUEST, refusal.FLOW_TOO_LARGE, refusal.KEY_REUSED, refusal.NO_NATS),
)
_SUBMIT_BATCH = Operation(
    name="submitBatch",
    method="post",
    path="/runs/batch",
    title="Submit up to 1,000 runs",
    text="Each item by itself: one that is wrong keeps no other back. The results have the order of the items.",
    parameters=(IDEMPOTENCY_KEY,),
    body=Body(shape=ref("Batch"), example={"runs": [SUBMISSION, {"flow_name": ""}]}),
    answer=Answer(text="What became of each item.", shape=ref("BatchResult"), example=BATCH_RESULT, headers=REPLAYED),
    refusals=(refusal.BAD_REQUEST, refusal.BODY_TOO_LARGE, refusal.KEY_REUSED, refusal.NO_NATS),
)
_LIST = Operation(
    name="listRuns",
    method="get",
    path="/runs",
    title="List runs",
    text="The newest `updated_at` first. Without `cursor`, `updated_after` and `workflow_yaml_sha256` the answer is a "
    "list, with one of them a page. Items are summaries unless `include` is `full` or `all`.",
    parameters=(
        *FILTERS,
        query("limit", whole(1, 200, 50), "How many at most.", 20),
        query("cursor", TEXT, "The `next_cursor` of the page before. Makes the answer a page."),
        query("include", INCLUDE.shape, "Repeatable. `full` and `all` give whole runs instead of summaries."),
    ),
    answer=Answer(
        text="A list, or a page.",
        shape={"anyOf": [{"type": "array", "items": ref("RunOrSummary")}, ref("RunPage")]},
        example=[SUMMARY],
        headers={**BEHIND, **PARTIAL},
    ),
    refusals=(refusal.BAD_QUERY, refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_WATCH_ALL = Operation(
    name="watchRuns",
    method="get",
    path="/runs/watch",
    title="Watch the list of runs",
    text="Server-sent events: `ready` at once, `run` with a summary whenever a run changes that the filters let pass, "
    "`gone` when one passes them no more, `heartbeat` after 5 s of silence, `dropped` when the client was too slow and "
    "has to list anew, `end` when the gateway stops.",
    parameters=(
        *FILTERS,
        query("timeout_sec", whole(1, 600, 600), "When the stream ends.", 30),
        LAST_EVENT_ID,
    ),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_THE_LIST, media=EVENTS),
    refusals=(refusal.BAD_QUERY, refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_READ = Operation(
    name="readRun",
    method="get",
    path="/runs/{run_id}",
    title="Read a run",
    parameters=(RUN_IN_PATH, INCLUDE),
    answer=Answer(text="The latest state of the run.", shape=ref("Run"), example=RUN),
    refusals=(refusal.NO_RUN, refusal.NO_PATH, refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_TASKS = Operation(
    name="readTasks",
    method="get",
    path="/runs/{run_id}/tasks",
    title="Read the tasks of a run",
    parameters=(RUN_IN_PATH,),
    answer=Answer(text="The tasks, and what is known of them.", shape=ref("RunTasks"), example=RUN_TASKS),
    refusals=(refusal.NO_RUN, refusal.NO_PATH, refusal.NO_NATS),
)
_WATCH = Operation(
    name="watchRun",
    method="get",
    path="/runs/{run_id}/watch",
    title="Watch a run",
    text="Server-sent events: `snapshot` at once and on every change, `heartbeat` after 5 s of silence, both with what "
    "the run waits for, `end` when the gateway stops. The `graph` comes with the first `snapshot` and when it has "
    "changed. The stream ends at its time-out.",
    parameters=(
        RUN_IN_PATH,
        INCLUDE,
        query("since", NUMBER, "Only states that are not older than this time."),
        query("timeout_sec", whole(1, 600, 60), "When the stream ends.", 30),
        LAST_EVENT_ID,
    ),
    answer=Answer(text="Events, one after the other.", shape=ref("Event"), example=EVENTS_OF_A_RUN, media=EVENTS),
    refusals=(refusal.NO_RUN, refusal.NO_PATH, refusal.BROKEN_QUERY, refusal.NO_NATS),
)
_CANCEL = Operation(
    name="cancelRun",
    method="post",
    path="/runs/{run_id}/cancel",
    title="Cancel a run",
    text="As often as you like: a run that has ended stays as it is.",
    parameters=(RUN_IN_PATH,),
    body=Body(
        shape=object_of(
            {"reason": {"type": ["string", "null"], "description": "Why; the first 500 characters are kept."}},
            optional=("reason",),
        ),
        example={"reason": "not needed any more"},
        is_required=False,
    ),
    answer=Answer(
        text="The run, CANCELLING or ended.",
        shape=ref("Run"),
        example={**RUN, "status": "CANCELLING", "end_time": None, "cancel_requested_at": 1795011221.5},
    ),
    refusals=(refusal.NO_RUN, refusal.NO_PATH, refusal.BAD_REQUEST, refusal.BODY_TOO_LARGE, refusal.NO_NATS),
)

RUNS = Group(
    "Runs",
    "A run is one execution of a flow.",
    (_SUBMIT, _SUBMIT_YAML, _SUBMIT_BATCH, _LIST, _WATCH_ALL, _READ, _TASKS, _WATCH, _CANCEL),
)
