"""The one converter: strict about what it knows, careful with what it does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.wire import (
    job_from,
    job_to,
    letter_from,
    letter_to,
    snapshot_from,
    snapshot_to,
    worker_from,
    worker_to,
)
from pyoco_runtime.model.worker import WorkerRecord, WorkerState

JOB = {"run_id": "r", "flow_name": "f", "tag": "t", "submitted_at": 1.5}
BIG = 1_000_000
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_job_of_the_contract_is_read() -> None:
    """Optional fields have their defaults."""
    job = job_from(json.dumps(JOB).encode())
    assert job == Job(run_id="r", flow_name="f", tag="t", submitted_at=1.5)


def test_what_another_writer_added_to_a_job_is_kept() -> None:
    """Unknown fields survive reading and writing."""
    job = job_from(json.dumps({**JOB, "priority": 3}).encode())
    assert isinstance(job, Job)
    assert json.loads(job_to(job))["priority"] == 3


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object but a list"),
        (b"3", "not a JSON object but a number"),
        (b"{}", "run_id: is missing"),
        (json.dumps({**JOB, "flow_name": 5}).encode(), "flow_name: must be text, not a number"),
        (json.dumps({**JOB, "run_id": ""}).encode(), "run_id: must not be empty"),
        (json.dumps({**JOB, "params": []}).encode(), "params: must be an object, not a list"),
        (json.dumps({**JOB, "tags": "a"}).encode(), "tags: must be a list, not text"),
        (json.dumps({**JOB, "tags": [1]}).encode(), "must be text, not a number"),
        (json.dumps({**JOB, "submitted_at": "now"}).encode(), "submitted_at: must be a number, not text"),
        (json.dumps({**JOB, "submitted_at": True}).encode(), "submitted_at: must be a number, not true or false"),
    ],
)
def test_what_is_no_job_says_why(data: bytes, problem: str) -> None:
    """The person who sent it finds the field in the dead letter."""
    job = job_from(data)
    assert isinstance(job, InvalidJob)
    assert problem in job.problem
    assert job.payload == data


def test_an_invalid_job_keeps_the_run_id_if_it_can_be_read() -> None:
    """So that the run can be failed."""
    job = job_from(json.dumps({**JOB, "params": 1}).encode())
    assert isinstance(job, InvalidJob)
    assert (job.run_id, job.flow_name) == ("r", "f")


@given(
    params=st.dictionaries(st.text(), JSON, max_size=4), extra=st.dictionaries(st.text(min_size=30), JSON, max_size=2)
)
def test_a_snapshot_survives_the_way_there_and_back(params: dict[str, object], extra: dict[str, object]) -> None:
    """Whatever its values are."""
    snapshot = RunSnapshot(
        run_id="r",
        flow_name="f",
        status=RunStatus.RUNNING,
        tags=("a", "b"),
        params=params,
        tasks={"t": TaskStatus.FAILED},
        task_records={"t": TaskRecord(state=TaskStatus.FAILED, output=params, extra=extra)},
        attempt=Attempt(7, 2),
        extra=extra,
    )
    data, fits = snapshot_to(snapshot, BIG)
    assert fits
    assert snapshot_from(data) == snapshot


def test_the_peers_snapshot_is_read() -> None:
    """Its nulls are our defaults, and what it adds is kept."""
    peers = {
        "run_id": "r",
        "flow_name": "f",
        "status": "PENDING",
        "tags": None,
        "task_records": None,
        "tag": None,
        "x": 1,
    }
    snapshot = snapshot_from(json.dumps(peers).encode())
    assert (snapshot.tags, snapshot.task_records, snapshot.tag, snapshot.attempt) == ((), {}, None, None)
    assert json.loads(snapshot_to(snapshot, BIG)[0])["x"] == 1


def test_numbers_that_json_does_not_know_are_stored_as_their_repr() -> None:
    """NaN is not JSON."""
    record = TaskRecord(output=[float("nan"), {"a": float("inf")}])
    snapshot = RunSnapshot(run_id="r", flow_name="f", status=RunStatus.RUNNING, task_records={"t": record})
    stored = json.loads(snapshot_to(snapshot, BIG)[0], parse_constant=lambda text: pytest.fail(text))
    assert stored["task_records"]["t"]["output"] == ["nan", {"a": "inf"}]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"run_id":"r","flow_name":"f","status":"LOST"}'])
def test_a_damaged_snapshot_is_unreadable_and_not_a_crash(data: bytes) -> None:
    """With an error of ours."""
    with pytest.raises(Unreadable, match="not a RunSnapshot"):
        snapshot_from(data)


def test_a_worker_record_and_a_letter_survive_the_way_there_and_back() -> None:
    """With all their fields."""
    record = WorkerRecord(worker_id="w", instance_id="i", state=WorkerState.IDLE, hidden=True, extra={"a": 1})
    assert worker_from(worker_to(record)) == record
    letter = DeadLetter(timestamp=1.0, reason=Reason.INVALID_JOB, error="e", payload="{")
    assert letter_from(letter_to(letter)) == letter
