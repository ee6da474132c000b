"""A snapshot under the size cap."""

from __future__ import annotations

import json

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.wire import snapshot_from, snapshot_to


def snapshot(sizes: list[int], error: str | None = None) -> RunSnapshot:
    """One task for each size of output, ended in this order."""
    records = {
        f"t{n}": TaskRecord(state=TaskStatus.SUCCEEDED, started_at=1.0, ended_at=float(n), output="x" * size)
        for n, size in enumerate(sizes)
    }
    tasks = dict.fromkeys(records, TaskStatus.SUCCEEDED)
    return RunSnapshot(
        run_id="r", flow_name="f", status=RunStatus.RUNNING, tasks=tasks, task_records=records, error=error
    )


def test_what_fits_is_left_alone() -> None:
    """And is not marked."""
    made = snapshot([10, 10])
    assert snapshot_from(snapshot_to(made, 10_000)[0]) == made


def test_the_outputs_of_the_oldest_tasks_go_first() -> None:
    """The newest is what people look at."""
    data, fits = snapshot_to(snapshot([5000, 5000, 5000]), 9000)
    found = snapshot_from(data)
    assert fits
    assert found.task_records_truncated
    assert found.task_records["t0"].output is None
    assert found.task_records["t2"].output == "x" * 5000


def test_then_whole_records_go_and_the_tasks_stay() -> None:
    """`tasks` is never shortened."""
    data, fits = snapshot_to(snapshot([100] * 50), 3000)
    found = snapshot_from(data)
    assert fits
    assert len(found.tasks) == 50
    assert len(found.task_records) < 50


def test_between_the_details_and_the_records_the_graph_goes() -> None:
    """It stays while a task has a detail to lose, and no record goes before it."""
    made = evolve(snapshot([2000] * 10), graph={"nodes": [{"id": "x" * 2000, "kind": "task"}], "edges": []})
    for limit in range(800, 26_000, 400):
        found = snapshot_from(snapshot_to(made, limit)[0])
        has_details = any(record.output is not None for record in found.task_records.values())
        if found.graph is None:
            assert not has_details or limit < 6000  # all details are worth less than it, and it is large
        if len(found.task_records) < 10:
            assert found.graph is None
    assert found == made


def test_what_cannot_fit_is_as_small_as_can_be_and_says_so() -> None:
    """The run must still end."""
    data, fits = snapshot_to(snapshot([10] * 100, error="e" * 100_000), 500)
    found = snapshot_from(data)
    assert not fits
    assert found.task_records == {}
    assert len(found.error or "") == 2000


@given(sizes=st.lists(st.integers(0, 3000), max_size=30), limit=st.integers(400, 20_000))
def test_it_fits_or_says_that_it_does_not(sizes: list[int], limit: int) -> None:
    """And the tasks are always all there."""
    made = snapshot(sizes)
    data, fits = snapshot_to(made, limit)
    assert fits == (len(data) <= limit)
    assert json.loads(data)["tasks"] == dict(made.tasks)


def test_a_run_of_too_many_tasks_for_the_store_still_ends() -> None:
    """What the server would refuse for its size alone loses even its tasks."""
    made = snapshot([1] * 2000)
    data, fits = snapshot_to(made, 1000, hard_limit=2000)
    assert fits
    assert snapshot_from(data).status is made.status
