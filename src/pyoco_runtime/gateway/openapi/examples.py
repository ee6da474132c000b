"""One story told in examples: the flow `hello` on worker-1, on the 18th of November 2026."""

from __future__ import annotations

from typing import Any

from pyoco_runtime.gateway.openapi.refusal import BAD_REQUEST

Example = dict[str, Any]

RUN_ID = "0b6f2c1e-5d0a-4c8e-9a51-7d0c3f1f2b11"
WHEEL_NAME = "demo-1.0-py3-none-any.whl"
FLOW_YAML = "version: 1\nflow:\n  graph: hello\ntasks:\n  hello:\n    callable: demo.tasks:hello\n"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_SHA256_B64 = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg="
_SUBMITTED, _STARTED, _ENDED = 1795011220.0, 1795011220.012, 1795011220.345

SUBMISSION: Example = {"flow_name": "hello", "params": {"x": 1}, "tag": "default", "tags": ["nightly"]}
ACCEPTED: Example = {"run_id": RUN_ID, "status": "PENDING"}
PROBLEM: Example = {"detail": BAD_REQUEST.detail, "err_id": "ERR-PYOCO-0002", "msg_id": "MSG-PYOCO-0002"}
BATCH_RESULT: Example = {"results": [ACCEPTED, PROBLEM], "accepted": 1, "refused": 1}
TASK_RECORD: Example = {
    "state": "SUCCEEDED",
    "started_at": _STARTED,
    "ended_at": _ENDED,
    "duration_ms": 333.0,
    "error": None,
    "traceback": None,
    "inputs": {"x": 1},
    "output": "hello 1",
    "artifacts": {},
    "stdout": "hello 1\n",
    "stderr": None,
}
RUN: Example = {
    "run_id": RUN_ID,
    "flow_name": "hello",
    "status": "COMPLETED",
    "tag": "default",
    "tags": ["nightly"],
    "tenant_id": None,
    "api_key_id": None,
    "params": {"x": 1},
    "tasks": {"hello": "SUCCEEDED"},
    "worker_id": "worker-1",
    "start_time": _STARTED,
    "end_time": _ENDED,
    "heartbeat_at": _ENDED,
    "updated_at": _ENDED,
    "error": None,
    "cancel_requested_at": None,
    "cancel_requested_by": None,
    "workflow_yaml_sha256": None,
    "workflow_yaml_bytes": None,
    "attempt": {"seq": 42, "delivery": 1},
    "graph": {"nodes": [{"id": "hello", "kind": "task"}], "edges": []},
    "submitted_at": _SUBMITTED,
    "submitted_by": None,
    "waiting": None,
    "worker_alive": True,
    "worker_state": "IDLE",
    "worker_heartbeat_at": _ENDED,
    "worker_tags": ["default"],
    "worker_hidden": False,
}
SUMMARY: Example = {
    "run_id": RUN_ID,
    "flow_name": "hello",
    "tag": "default",
    "tags": ["nightly"],
    "tenant_id": None,
    "api_key_id": None,
    "status": "COMPLETED",
    "updated_at": _ENDED,
    "heartbeat_at": _ENDED,
    "worker_id": "worker-1",
    "error": None,
    "workflow_yaml_sha256": None,
    "start_time": _STARTED,
    "end_time": _ENDED,
    "revision": 97,
}
RUN_TASKS: Example = {
    "run_id": RUN_ID,
    "flow_name": "hello",
    "status": "COMPLETED",
    "tasks": {"hello": "SUCCEEDED"},
    "task_records": {"hello": TASK_RECORD},
    "task_records_truncated": False,
}
EVENTS_OF_A_RUN = (
    f'id: 97\nevent: snapshot\ndata: {{"run_id":"{RUN_ID}","snapshot":{{...}},"ts":1795011220.35,"waiting":null}}\n\n'
    f'event: heartbeat\ndata: {{"run_id":"{RUN_ID}","ts":1795011225.35,"waiting":null}}\n\n'
)
EVENTS_OF_THE_LIST = (
    'id: 96\nevent: ready\ndata: {"revision":96,"behind":null,"ts":1795011219.0}\n\n'
    f'id: 97\nevent: run\ndata: {{"run_id":"{RUN_ID}","status":"COMPLETED",...}}\n\n'
)
WORKER: Example = {
    "worker_id": "worker-1",
    "instance_id": "5f0c6f0e9d1b4f6c8a7e",
    "state": "IDLE",
    "hidden": False,
    "tags": ["default"],
    "last_seen_at": _ENDED,
    "last_heartbeat_at": _ENDED,
    "heartbeat_at": _ENDED,
    "current_run_id": None,
    "last_run_id": RUN_ID,
    "last_run_status": "COMPLETED",
    "last_run_started_at": _STARTED,
    "last_run_finished_at": _ENDED,
    "stopped_at": None,
    "stop_reason": None,
    "updated_at": _ENDED,
    "wheel_sync": {
        "enabled": False,
        "last_result": "disabled",
        "last_attempt_at": None,
        "last_success_at": None,
        "last_synced_at": None,
        "last_error": None,
        "selected_count": 0,
        "updated_count": 0,
        "removed_count": 0,
        "skipped_incompatible_count": 0,
        "selected_wheels": [],
        "updated_wheels": [],
        "removed_wheels": [],
        "skipped_incompatible": [],
        "installed_wheels": [],
    },
    "flows": ["failing", "hello", "slow"],
    "tasks": [],
}
EVENTS_OF_WORKERS = (
    'event: workers\ndata: {"items":[...],"behind":null,"ts":1795011219.0}\n\n'
    'event: worker\ndata: {"worker_id":"worker-1","state":"IDLE",...}\n\n'
)
WHEEL: Example = {
    "name": WHEEL_NAME,
    "size_bytes": 1234,
    "bucket": "pyoco_wheels",
    "nuid": "YB2ZJ5X1GQXK0PR4XJ0DUO",
    "modified": _SUBMITTED,
    "sha256_hex": _SHA256,
    "tags": ["default", "gpu"],
    "digest": f"SHA-256={_SHA256_B64}",
    "sha256_b64": _SHA256_B64,
    "mtime": "2026-11-18T14:13:40Z",
}
WHEEL_EVENT: Example = {
    "event_id": "7f1d2c3b4a594e6f8d7c6b5a49382716",
    "occurred_at": _SUBMITTED,
    "action": "upload",
    "wheel_name": WHEEL_NAME,
    "tags": ["default", "gpu"],
    "size_bytes": 1234,
    "sha256_hex": _SHA256,
    "replace": True,
    "actor": {"tenant_id": None, "api_key_id": None},
    "source": {
        "remote_addr": "127.0.0.1",
        "x_forwarded_for": None,
        "x_real_ip": None,
        "user_agent": "curl/8.5.0",
        "host": "127.0.0.1:8000",
        "scheme": "http",
    },
}
LETTER: Example = {
    "seq": 17,
    "timestamp": _ENDED,
    "reason": "execution_error",
    "error": "ValueError: x must not be 1",
    "run_id": RUN_ID,
    "flow_name": "hello",
    "tag": "default",
    "tags": ["nightly"],
    "tenant_id": None,
    "api_key_id": None,
    "worker_id": "worker-1",
    "num_delivered": 1,
    "subject": "pyoco.work.default",
    "payload": None,
    "replayable": True,
}
EVENTS_OF_LETTERS = (
    "event: change\n"
    'data: {"count":1,"newest_seq":17,"reasons":{"execution_error":1,...},"behind":null,"ts":1795011220.4}\n\n'
)
PROCESS: Example = {
    "process": "gw-1",
    "role": "gateway",
    "host": "node-a",
    "pid": 4711,
    "version": "0.1.0",
    "started_at": _SUBMITTED,
    "tree": {
        "path": "runtime",
        "name": "runtime",
        "supervisor": True,
        "state": "running",
        "since": _SUBMITTED,
        "restarts": 0,
        "last_crash": None,
        "mailbox": None,
        "children": [],
    },
}
EVENTS_OF_THE_HOUSE = (
    'event: actors\ndata: {"items":[...],"ts":1795011219.0}\n\n'
    'event: process\ndata: {"process":"gw-1","tree":{...},...}\n\n'
)
STATS: Example = {
    "ts": _ENDED,
    "bucket_sec": 60,
    "buckets": 60,
    "start": 1795007640,
    "since": _SUBMITTED,
    "counts": {"COMPLETED": 1},
    "ended": {"COMPLETED": [0, 1], "FAILED": [0, 0], "CANCELLED": [0, 0]},
    "flows": [
        {
            "flow": "hello",
            "total": 1,
            "p50": 0.333,
            "p95": 0.333,
            "count": [0, 1],
            "p50_sec": [None, 0.333],
            "p95_sec": [None, 0.333],
        }
    ],
    "queue": [{"tag": "default", "waiting": [None, 0], "in_hand": [None, 1], "oldest_sec": [None, 0.0]}],
    "queue_visible": True,
}
EVENTS_OF_STATS = 'event: stats\ndata: {"ts":1795011220.345,"flows":[...],...}\n\n'
METRICS = (
    "# HELP pyoco_runs_total Runs that are stored.\n"
    "# TYPE pyoco_runs_total gauge\n"
    'pyoco_runs_total{status="COMPLETED"} 1.0\n'
)
NOT_READY: Example = {"missing": ["nats: not connected to nats://127.0.0.1:4222 (ConnectionRefusedError)"]}
