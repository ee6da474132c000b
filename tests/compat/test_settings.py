"""One .env for both: the names in it are the names that both use, whoever makes the resources."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import anyio
import nats
import pytest

from pyoco_runtime.testing.nats_server import nats_server
from tests.compat.house import GREETING, ended, submit
from tests.compat.peer import FLOWS, peer_gateway, peer_worker, require
from tests.integration.gateway_client import gateway, good
from tests.integration.worker_client import worker

DOTENV = """
# both read this file
PYOCO_WORK_SUBJECT_PREFIX=acme.work
PYOCO_DEFAULT_TAG="blue"
PYOCO_RUNS_KV_BUCKET=acme_runs
PYOCO_WORKERS_KV_BUCKET='acme_workers'
PYOCO_WORKERS_KV_TTL_SEC=60  # seconds
PYOCO_AUTH_KV_BUCKET=acme_auth
PYOCO_DLQ_STREAM=ACME_DLQ
PYOCO_DLQ_SUBJECT_PREFIX=acme.dlq
PYOCO_DLQ_MAX_MSGS=50
PYOCO_WHEEL_OBJECT_STORE_BUCKET=acme_wheels
PYOCO_WHEEL_HISTORY_KV_BUCKET=acme_wheel_history
export PYOCO_WORKFLOW_YAML_MAX_BYTES=2000
PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC=30
PYOCO_CONSUMER_ACK_WAIT_SEC=7
"""
BOTH_MAKE = {
    "PYOCO_WORK",
    "ACME_DLQ",
    "KV_acme_runs",
    "KV_acme_workers",
    "KV_acme_auth",
    "KV_acme_wheel_history",
    "OBJ_acme_wheels",
}


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_both_use_what_either_has_made(tmp_path: Path, first: str) -> None:
    """Runs pass between them, and no resource under another name appears but the one of ours for idempotency keys."""
    require()
    (tmp_path / ".env").write_text(DOTENV)
    with ExitStack() as stack:
        url = stack.enter_context(nats_server(tmp_path / "store")).url
        gates = {}
        for kind in sorted(("ours", "theirs"), key=lambda kind: kind != first):
            if kind == "ours":
                gates[kind] = stack.enter_context(gateway(tmp_path, url)).http
            else:
                gates[kind] = stack.enter_context(peer_gateway(tmp_path, url)).http
        args = ("--tags", "ours", "--flow-resolver", f"{FLOWS}:resolve")
        stack.enter_context(worker(tmp_path, url, *args, name="our-worker"))
        stack.enter_context(peer_worker(tmp_path, url, name="their-worker", tags="theirs,blue"))
        for gate in gates.values():
            for tag in ("ours", "theirs"):
                assert ended(gate, submit(gate, "hello", tag))["status"] == "COMPLETED"
            run_id = good(gate.post("/runs", json={"flow_name": "hello"}))["run_id"]
            assert ended(gate, run_id)["tag"] == "blue"
            big = {"workflow": ("flow.yaml", (GREETING + "#" * 2000).encode())}
            answer = gate.post("/runs/yaml", files=big, data={"flow_name": "main", "tag": "blue"})
            assert answer.status_code == 413
        assert anyio.run(streams, url) == BOTH_MAKE | {"KV_pyoco_idempotency"}


async def streams(url: str) -> set[str]:
    """The names of all streams, which buckets are too."""
    client = await nats.connect(url)
    try:
        return {info.config.name or "" for info in await client.jetstream().streams_info()}
    finally:
        await client.close()
