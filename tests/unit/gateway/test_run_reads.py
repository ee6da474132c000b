"""GET /runs/{id} and GET /runs/{id}/tasks."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pyoco_runtime.model.run import RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.worker import WorkerState
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Office, on_asyncio

CONTRACT = [
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "status",
    "params",
    "tasks",
    "worker_id",
    "start_time",
    "end_time",
    "heartbeat_at",
    "updated_at",
    "error",
    "cancel_requested_at",
    "cancel_requested_by",
    "workflow_yaml_sha256",
    "workflow_yaml_bytes",
]
TASKS: dict[str, Any] = {
    "tasks": {"t": TaskStatus.FAILED},
    "task_records": {
        "t": TaskRecord(
            state=TaskStatus.FAILED, started_at=1.0, ended_at=2.5, duration_ms=1500.0, error="bad", traceback="Trace",
            inputs={"x": 1}, output=None, artifacts={"a": "b"},
        )
    },
}  # fmt: skip


@on_asyncio
async def test_a_snapshot_without_its_records() -> None:
    """All fields of the contract; what another writer added is shown as it is."""
    async with Office().open() as office:
        office.write("a", params={"x": 1}, **TASKS, extra={"theirs": [1]})
        answer = await office.client.get("/runs/a")
        assert answer.status == 200
        assert set(answer.json) >= set(CONTRACT)
        assert not {"task_records", "task_records_truncated"} & set(answer.json)
        wanted = {"run_id": "a", "status": "RUNNING", "params": {"x": 1}, "tasks": {"t": "FAILED"}, "theirs": [1]}
        assert wanted.items() <= answer.json.items()


@pytest.mark.parametrize("include", ["records", "full", "all", "x&include=records", "task_records"])
@on_asyncio
async def test_records_on_request(include: str) -> None:
    """The field may be repeated."""
    async with Office().open() as office:
        office.write("a", **TASKS, task_records_truncated=True)
        found = (await office.client.get(f"/runs/a?include={include}")).json
        assert found["task_records_truncated"] is True
        record = found["task_records"]["t"]
        keys = ("state", "started_at", "ended_at", "duration_ms", "error", "traceback", "inputs", "output", "artifacts")
        assert {key: record[key] for key in keys} == {
            "state": "FAILED", "started_at": 1.0, "ended_at": 2.5, "duration_ms": 1500.0, "error": "bad",
            "traceback": "Trace", "inputs": {"x": 1}, "output": None, "artifacts": {"a": "b"},
        }  # fmt: skip


@on_asyncio
async def test_tasks() -> None:
    """Exactly the fields of the contract."""
    async with Office().open() as office:
        office.write("a", RunStatus.FAILED, flow_name="g", **TASKS)
        found = (await office.client.get("/runs/a/tasks")).json
        assert found["task_records"]["t"]["error"] == "bad"
        assert {**found, "task_records": 0} == {
            "run_id": "a",
            "flow_name": "g",
            "status": "FAILED",
            "tasks": {"t": "FAILED"},
            "task_records": 0,
            "task_records_truncated": False,
        }


@pytest.mark.parametrize(
    "run_id", ["x", "%00", "..", "a%20b", "%2e%2e", "*", "%3E", "x" * 5000, "%F0%9F%98%80", "watch%20", "%ff"]
)
@pytest.mark.parametrize("path", ["/runs/{}", "/runs/{}/tasks", "/runs/{}/watch"])
@on_asyncio
async def test_a_run_that_is_not_there_is_404(path: str, run_id: str) -> None:
    """ERR-0005, whatever the id looks like."""
    async with Office().open() as office:
        answer = await office.client.get(path.format(run_id))
        assert (answer.status, answer.err_id) == (404, "ERR-PYOCO-0005")
        assert answer.json["detail"] == "run not found"


@pytest.mark.parametrize("path", ["/runs/a", "/runs/a/tasks", "/runs/a/watch"])
@pytest.mark.parametrize("data", [b"nonsense", b"[]", b'{"run_id": "a"}', b"\xff", b"[" * 100_000])
@on_asyncio
async def test_a_snapshot_that_cannot_be_read_is_404(path: str, data: bytes) -> None:
    """Somebody else wrote nonsense; the answer says that."""
    async with Office().open() as office:
        office.server.write_run("a", data)
        answer = await office.client.get(path)
        assert (answer.status, answer.err_id) == (404, "ERR-PYOCO-0005")
        assert "cannot be read" in answer.json["detail"]


@on_asyncio
async def test_a_read_shows_what_was_written_last() -> None:
    """Single runs are read where they are stored: no index is behind."""
    async with Office().open(indexing=False) as office:
        office.write("a")
        assert (await office.client.get("/runs/a")).json["status"] == "RUNNING"
        office.write("a", RunStatus.COMPLETED)
        assert (await office.client.get("/runs/a")).json["status"] == "COMPLETED"
        office.remove("a")
        assert (await office.client.get("/runs/a")).status == 404


@pytest.mark.parametrize("path", ["/runs/a", "/runs/a/tasks", "/runs/a/watch"])
@on_asyncio
async def test_a_hiccup_is_503_and_not_404(path: str) -> None:
    """Nobody is told that a run is gone when nobody knows."""
    async with Office().open() as office:
        office.write("a")
        office.faults.next("run_store.get", Lost.AFTER)
        answer = await office.client.get(path)
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")


@on_asyncio
async def test_a_stale_run_is_still_running() -> None:
    """STALE is a reading that the client makes of `heartbeat_at`; the status stays."""
    async with Office().open() as office:
        office.write("a", heartbeat_at=virtual_clock(), worker_id="w")
        await anyio.sleep(3600)
        found = (await office.client.get("/runs/a")).json
        assert (found["status"], found["heartbeat_at"] < virtual_clock() - 3000) == ("RUNNING", True)


# -- the worker that owns it ------------------------------------------------------------------------------------------

OWNER = ("worker_alive", "worker_state", "worker_heartbeat_at", "worker_tags", "worker_hidden")


@on_asyncio
async def test_nobody_owns_a_pending_run() -> None:
    """Then there is nothing to show."""
    async with Office().open() as office:
        office.write("a", RunStatus.PENDING)
        assert not set(OWNER) & set((await office.client.get("/runs/a")).json)


@pytest.mark.parametrize(
    ("state", "silent_sec", "shown", "alive"),
    [
        (WorkerState.RUNNING, 0, "RUNNING", True),
        (WorkerState.IDLE, 19, "IDLE", True),
        (WorkerState.RUNNING, 21, "DISCONNECTED", False),
        (WorkerState.STOPPED_GRACEFUL, 0, "STOPPED_GRACEFUL", False),
        (WorkerState.STOPPED_GRACEFUL, 100, "STOPPED_GRACEFUL", False),
    ],
)
@on_asyncio
async def test_what_a_run_shows_of_its_worker(state: WorkerState, silent_sec: float, shown: str, alive: bool) -> None:
    """A worker that is silent for too long is disconnected, unless it said good-bye."""
    async with Office().open() as office:
        office.work("w", state, tags=("gpu",), hidden=True)
        beat = virtual_clock()
        office.write("a", worker_id="w")
        await anyio.sleep(silent_sec)
        await office.caught_up()
        found = (await office.client.get("/runs/a")).json
        assert [found[key] for key in OWNER] == [alive, shown, beat, ["gpu"], True]


@on_asyncio
async def test_a_worker_without_a_record_is_not_alive() -> None:
    """More is not known of it."""
    async with Office().open() as office:
        office.write("a", worker_id="gone")
        found = (await office.client.get("/runs/a")).json
        assert found["worker_alive"] is False
        assert "worker_state" not in found
