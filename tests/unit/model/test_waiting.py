"""What a run waits for, in every state that it can be in."""

from __future__ import annotations

from typing import Any

import pytest

from pyoco_runtime.messages.catalogue import LANGUAGES, ui_texts
from pyoco_runtime.model.crew import Crew, crew_of
from pyoco_runtime.model.offer import Offered
from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.waiting import Scene, WaitCode, Waiting, waiting_for
from pyoco_runtime.model.worker import WorkerRecord, WorkerState

NOW = 1000.0
ANYTHING = Offered(None, None)
FREE, FULL = Crew(ANYTHING, True), Crew(ANYTHING, False)


def run(status: RunStatus, **fields: Any) -> RunSnapshot:
    return RunSnapshot(run_id="r", flow_name="f", tag="t", status=status, **fields)


def wait(found: RunSnapshot, crew: Crew | None = FREE, **scene: Any) -> Waiting | None:
    return waiting_for(found, Scene(crew=crew, **scene), NOW)


@pytest.mark.parametrize("status", [status for status in RunStatus if status.is_terminal])
def test_a_run_that_is_over_waits_for_nothing(status: RunStatus) -> None:
    """Whoever is there."""
    assert wait(run(status), None) is None


@pytest.mark.parametrize(
    ("crew", "is_known", "code"),
    [
        (None, True, WaitCode.NO_WORKER),
        (None, False, WaitCode.QUEUED),
        (FREE, True, WaitCode.QUEUED),
        (FULL, True, WaitCode.WORKERS_BUSY),
        (Crew(Offered(frozenset({"f"}), None), False), True, WaitCode.WORKERS_BUSY),
        (Crew(Offered(frozenset({"g"}), None), True), False, WaitCode.QUEUED),
    ],
)
def test_in_the_queue_it_waits_for_a_worker(crew: Crew | None, is_known: bool, code: WaitCode) -> None:
    """As long as not all workers are known, nothing is said of them."""
    assert wait(run(RunStatus.PENDING), crew, is_known=is_known) == Waiting(code, {"tag": "t"})


def test_a_flow_that_nobody_has() -> None:
    """A flow.yaml brings its own."""
    crew = Crew(Offered(frozenset({"g"}), frozenset()), True)
    assert wait(run(RunStatus.PENDING), crew) == Waiting(WaitCode.NO_FLOW, {"tag": "t", "flow": "f"})
    assert wait(run(RunStatus.PENDING, workflow_yaml_sha256="0"), crew) == Waiting(WaitCode.QUEUED, {"tag": "t"})


def test_while_it_runs_it_waits_for_the_task_that_runs_longest() -> None:
    """Of several; a task whose record was dropped counts last."""
    records = {name: TaskRecord(state=TaskStatus.RUNNING, started_at=at) for name, at in [("a", 7.0), ("b", 5.0)]}
    tasks = {"done": TaskStatus.SUCCEEDED, "x": TaskStatus.RUNNING, "a": TaskStatus.RUNNING, "b": TaskStatus.RUNNING}
    found = run(RunStatus.RUNNING, worker_id="w", heartbeat_at=NOW, tasks=tasks, task_records=records)
    assert wait(found) == Waiting(WaitCode.TASK, {"task": "b", "since": 5.0})
    found = run(RunStatus.RUNNING, worker_id="w", heartbeat_at=NOW, tasks={"x": TaskStatus.RUNNING})
    assert wait(found) == Waiting(WaitCode.TASK, {"task": "x", "since": None})


def test_before_and_between_tasks_the_worker_has_it() -> None:
    """That is short, unless the flow is hard to find."""
    found = run(RunStatus.RUNNING, worker_id="w", start_time=990.0, heartbeat_at=NOW)
    assert wait(found, None) == Waiting(WaitCode.STARTING, {"worker_id": "w", "since": 990.0})


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.CANCELLING])
@pytest.mark.parametrize(
    ("heartbeat_at", "owner", "is_lost"),
    [
        (NOW - 30, WorkerState.RUNNING, False),
        (NOW - 30.1, WorkerState.RUNNING, True),
        (NOW - 30.1, None, True),
        (NOW, WorkerState.DISCONNECTED, True),
        (NOW, WorkerState.STOPPED_GRACEFUL, True),
        (None, WorkerState.IDLE, False),
    ],
)
def test_a_worker_that_is_gone(status: RunStatus, heartbeat_at: float, owner: WorkerState, is_lost: bool) -> None:
    """STALE as in the contract, or sooner if the worker itself is known to be gone."""
    found = wait(run(status, worker_id="w", heartbeat_at=heartbeat_at, cancel_requested_at=1.0), owner=owner)
    lost = Waiting(WaitCode.LOST_WORKER, {"worker_id": "w", "since": heartbeat_at})
    assert (found == lost) is is_lost


def test_one_that_was_asked_to_stop() -> None:
    """It needs a worker to be ended, too."""
    asked: dict[str, Any] = {"cancel_requested_at": 900.0, "cancel_requested_by": "api_key:k"}
    expected = Waiting(WaitCode.CANCELLING, {"since": 900.0, "by": "api_key:k"})
    assert wait(run(RunStatus.CANCELLING, worker_id="w", heartbeat_at=NOW, **asked), None) == expected
    assert wait(run(RunStatus.RUNNING, worker_id="w", heartbeat_at=NOW, **asked)) == expected
    assert wait(run(RunStatus.CANCELLING, **asked)) == expected
    assert wait(run(RunStatus.CANCELLING, **asked), None) == Waiting(WaitCode.NO_WORKER, {"tag": "t"})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_reason_has_its_sentence(lang: Any) -> None:
    """The page finds it by the code."""
    there = {key.rpartition(".")[2] for key in ui_texts(lang) if key.startswith("ui.shared.waiting.")}
    assert there == set(WaitCode)


# -- the workers of a tag ---------------------------------------------------------------------------------------------


def worker(state: WorkerState = WorkerState.RUNNING, **fields: Any) -> WorkerRecord:
    return WorkerRecord(**{"worker_id": "w", "instance_id": "i", "state": state, "tags": ("t",), **fields})


@pytest.mark.parametrize(
    ("members", "has_room"),
    [
        ([worker(WorkerState.IDLE)], True),
        ([worker()], False),
        ([worker(), worker(WorkerState.IDLE)], True),
        ([worker(extra={"concurrency": 2, "current_run_ids": ["a"]})], True),
        ([worker(extra={"concurrency": 2, "current_run_ids": ["a", "b"]})], False),
        ([worker(extra={"concurrency": "2", "current_run_ids": 1})], False),
    ],
)
def test_whether_a_crew_has_room(members: list[WorkerRecord], has_room: bool) -> None:
    """Workers of other makes take one run at a time."""
    crew = crew_of("t", members)
    assert crew is not None
    assert crew.has_room is has_room


def test_a_crew_is_of_one_tag_and_offers_what_all_offer() -> None:
    """As soon as one cannot tell, anything may be there."""
    others = [worker(tags=("u",), flows=("x",)), worker(tags=("u", "v"), flows=("y",))]
    assert crew_of("t", others) is None
    found = crew_of("u", others)
    assert found is not None
    assert found.offered.flows == frozenset({"x", "y"})
    unsure = crew_of("u", [*others, worker(tags=("u",))])
    assert unsure is not None
    assert unsure.offered.flows is None
