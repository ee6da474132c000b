"""One run of one flow: what is reported, in which order, and how it ends."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow, Task

from pyoco_runtime.engine.chain import as_chain, in_order
from pyoco_runtime.engine.driver import Driver, NoSuchFlow
from pyoco_runtime.engine.outbox import Outbox
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
    FlowNotFound,
    FlowStarted,
    Progress,
    Raised,
    Stopped,
    TaskEnded,
    TaskLogged,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus

JOB = Job(run_id="run", flow_name="f", tag="t", submitted_at=0.0, tenant_id="acme")


class Run:
    """A driver over functions; each becomes a task of its name."""

    def __init__(
        self, *functions: Callable[..., Any], params: dict[str, Any] | None = None, limit: int = 65536
    ) -> None:
        self.tasks = [Task(func=function, name=function.__name__) for function in functions]
        self.flow = Flow("f")
        self.outbox = Outbox(lambda: None)
        self.driver = Driver(JOB, Attempt(12, 3), params or {}, self.outbox, limit)

    def in_a_row(self) -> Run:
        for each in self.tasks:
            self.flow >> each
        return self

    def side_by_side(self) -> Run:
        for each in self.tasks:
            self.flow.add_task(each)
        return self

    def execute(self) -> list[Progress]:
        self.driver.execute(lambda job: self.flow)
        return self.outbox.fetch()


def ending(events: list[Progress]) -> Ending:
    assert isinstance(events[-1], FlowEnded)
    assert not any(isinstance(event, FlowEnded) for event in events[:-1])
    return events[-1].ending


def ended(events: list[Progress]) -> dict[str, TaskEnded]:
    return {event.task: event for event in events if isinstance(event, TaskEnded)}


def states(events: list[Progress]) -> dict[str, str]:
    return {name: event.status.value for name, event in ended(events).items()}


def shape(events: list[Progress]) -> list[str]:
    return [f"{type(event).__name__} {getattr(event, 'task', '')}".strip() for event in events]


def first() -> int:
    print("one")
    return 1


def second(first: int) -> int:
    print("two", file=sys.stderr)
    return first + 1


def breaks() -> None:
    raise ValueError("broken")


# -- reporting --------------------------------------------------------------------------------------------------------


def test_a_run_is_told_step_by_step() -> None:
    """What started, what was printed, what came of it, in this order."""
    events = Run(first, second).in_a_row().execute()
    assert shape(events) == [
        "FlowStarted",
        "TaskStarted first",
        "TaskLogged first",
        "TaskEnded first",
        "TaskStarted second",
        "TaskLogged second",
        "TaskEnded second",
        "FlowEnded",
    ]
    graph = {
        "nodes": [{"id": "first", "kind": "task"}, {"id": "second", "kind": "task"}],
        "edges": [["first", "second"]],
    }
    assert events[0] == FlowStarted(("first", "second"), graph)
    assert events[2] == TaskLogged("first", "stdout", "one\n")
    assert events[5] == TaskLogged("second", "stderr", "two\n")
    assert (ended(events)["second"].inputs, ended(events)["second"].output) == ({"first": 1}, 2)
    assert ending(events) == Completed()


def test_tasks_side_by_side_print_each_for_itself() -> None:
    """They run at the same time in pyoco's own threads."""
    meet = threading.Barrier(2, timeout=5)

    def left() -> None:
        meet.wait()
        for _ in range(200):
            print("l", end="")

    def right() -> None:
        meet.wait()
        for _ in range(200):
            print("r", end="")

    events = Run(left, right).side_by_side().execute()
    logged = {event.task: event.text for event in events if isinstance(event, TaskLogged)}
    assert logged == {"left": "l" * 200, "right": "r" * 200}
    assert ending(events) == Completed()


def test_a_log_can_be_fetched_while_the_task_runs() -> None:
    """Not only at its end."""
    printed, go_on = threading.Event(), threading.Event()

    def talks() -> None:
        print("still here")
        printed.set()
        assert go_on.wait(5)

    run = Run(talks).in_a_row()
    thread = threading.Thread(target=run.driver.execute, args=(lambda job: run.flow,))
    thread.start()
    assert printed.wait(5)
    assert run.outbox.fetch()[-1] == TaskLogged("talks", "stdout", "still here\n")
    go_on.set()
    thread.join()
    assert ending(run.outbox.fetch()) == Completed()


def test_user_code_knows_its_run_and_attempt() -> None:
    """The fencing token, and what else the job says."""
    seen: list[Any] = []

    def asks(ctx: Context) -> None:
        seen.extend([ctx.run_context.run_id, ctx.run_context.metadata, ctx.resolve("$env.PYOCO_ATTEMPT")])
        seen.append(ctx.resolve("$env.PYOCO_RUN_ID"))

    Run(asks).in_a_row().execute()
    metadata = {"run_id": "run", "attempt": "12.3", "tag": "t", "tags": ["t"], "tenant_id": "acme"}
    assert seen == ["run", metadata, "12.3", "run"]


def test_values_are_json_and_not_too_large() -> None:
    """A large one is left out, and it is said that something is missing."""

    def makes(big: str, small: int) -> object:
        return {
            1,
        }

    events = Run(makes, params={"big": "x" * 100, "small": 1}, limit=50).in_a_row().execute()
    made = ended(events)["makes"]
    assert (made.inputs, made.output, made.truncated) == ({"big": None, "small": 1}, "{1}", True)


def test_a_coroutine_function_is_called_as_pyoco_does() -> None:
    """pyoco does not await it: the result is the coroutine itself."""

    async def later() -> int:
        return 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = Run(later).in_a_row().execute()
        assert ended(events)["later"].output.startswith("<coroutine object")
        del events


# -- ends -------------------------------------------------------------------------------------------------------------


def test_an_error_ends_the_flow() -> None:
    """With its words and the user's part of the traceback; the task behind it stays as it was."""
    events = Run(breaks, second).in_a_row().execute()
    end = ending(events)
    assert isinstance(end, Raised)
    assert end.error == "broken"
    assert end.traceback is not None
    assert "engine/driver.py" not in end.traceback
    assert 'raise ValueError("broken")' in end.traceback
    assert states(events) == {"breaks": "FAILED"}
    assert ended(events)["breaks"].error == "broken"


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [(SystemExit(3), "SystemExit: 3"), (KeyboardInterrupt(), "KeyboardInterrupt"), (GeneratorExit(), "GeneratorExit")],
)
def test_what_would_end_a_program_ends_the_task(error: BaseException, told: str, side_by_side: bool) -> None:
    """sys.exit() in a task is a failure of the task, not the end of the worker."""

    def quits() -> None:
        raise error

    run = Run(quits, first)
    events = (run.side_by_side() if side_by_side else run.in_a_row()).execute()
    end = ending(events)
    assert isinstance(end, Raised)
    assert end.error.startswith(told)
    assert states(events)["quits"] == "FAILED"
    assert (ended(events)["quits"].error or "").startswith(told)


def test_sys_exit_in_the_resolver_is_an_error_too() -> None:
    """It is user code as well."""
    run = Run()
    run.driver.execute(lambda job: sys.exit("no"))
    end = ending(run.outbox.fetch())
    assert isinstance(end, Raised)
    assert end.error == "SystemExit: no"


def test_an_unknown_flow_is_told_as_such() -> None:
    """It is not the flow's fault."""
    run = Run()

    def find(job: Job) -> Flow:
        raise NoSuchFlow("this worker has no flow")

    run.driver.execute(find)
    assert run.outbox.fetch()[-1].ending == FlowNotFound("this worker has no flow")  # type: ignore[union-attr]


def test_a_failure_that_is_isolated_does_not_end_the_flow() -> None:
    """What depends on it fails without a word from pyoco, and is told all the same."""
    run = Run(breaks, second).in_a_row()
    run.flow.add_task(Task(func=first, name="first"))
    run.tasks[0].fail_policy = "isolate"
    events = run.execute()
    assert ending(events) == Completed()
    assert states(events) == {"breaks": "FAILED", "second": "FAILED", "first": "SUCCEEDED"}


def test_a_task_is_tried_again_if_it_says_so() -> None:
    """Retries are pyoco's; it is one task all the while."""
    tries: list[int] = []

    def stumbles() -> str:
        tries.append(1)
        print(f"try {len(tries)}")
        if len(tries) < 2:
            raise ValueError("not yet")
        return "done"

    run = Run(stumbles).in_a_row()
    run.tasks[0].retries = 1
    events = run.execute()
    assert ending(events) == Completed()
    assert ended(events)["stumbles"].output == "done"
    assert [event.text for event in events if isinstance(event, TaskLogged)] == ["try 1\ntry 2\n"]


# -- stopping ---------------------------------------------------------------------------------------------------------


def test_a_run_stopped_before_it_begins_does_nothing() -> None:
    """Not even ask the resolver."""
    run = Run(first).in_a_row()
    run.driver.stop()
    assert shape(run.execute()) == ["FlowEnded"]


@pytest.mark.parametrize("kind", ["row", "pool", "control"])
def test_a_run_stopped_midway_leaves_out_the_rest(kind: str) -> None:
    """The tasks that did not begin are CANCELLED, in each of pyoco's ways to execute."""
    run: Run

    def stops() -> None:
        run.driver.stop()

    run = Run(stops, second).in_a_row()
    run.tasks[1].timeout_sec = 5 if kind == "pool" else None
    if kind == "control":
        run.flow = Flow("f") >> task(stops)[1] >> task(second)
    events = run.execute()
    assert ending(events) == Stopped()
    assert states(events) == {"stops": "SUCCEEDED", "second": "CANCELLED"}


@pytest.mark.parametrize("kind", ["row", "pool", "control"])
def test_a_stop_while_the_last_task_runs_is_a_stop(kind: str) -> None:
    """pyoco would leave it CANCELLING for ever; and the task may have ended early because it listened."""
    run: Run

    def listens(ctx: Context) -> bool:
        run.driver.stop()
        return bool(ctx.is_cancelled)

    run = Run(listens).in_a_row()
    run.tasks[0].timeout_sec = 5 if kind == "pool" else None
    if kind == "control":
        run.flow = Flow("f") >> task(listens)[1]
    events = run.execute()
    assert ending(events) == Stopped()
    assert ended(events)["listens"].output is True


def test_a_stop_after_the_end_changes_nothing() -> None:
    """It came too late."""
    run = Run(first).in_a_row()
    assert ending(run.execute()) == Completed()
    run.driver.stop()
    assert run.outbox.fetch() == []


# -- chains -----------------------------------------------------------------------------------------------------------


def test_only_what_pyoco_runs_one_by_one_is_a_chain() -> None:
    """Everything else is left to pyoco's pool of threads."""

    def chain(flow: Flow) -> list[str] | None:
        found = as_chain(flow, in_order(flow))
        return None if found is None else [each.name for each in found]

    assert chain(Run(first, second, breaks).in_a_row().flow) == ["first", "second", "breaks"]
    assert chain(Run(first, second).side_by_side().flow) is None
    for change in ({"timeout_sec": 1}, {"fail_policy": "isolate"}, {"trigger_policy": "ANY"}):
        run = Run(first, second).in_a_row()
        for name, value in change.items():
            setattr(run.tasks[1], name, value)
        assert chain(run.flow) is None
    run = Run(first, second).in_a_row()
    run.tasks[0].dependencies.add(run.tasks[1])
    assert chain(run.flow) is None
    run = Run(first).in_a_row()
    run.tasks[0].dependencies.add(Task(func=second, name="elsewhere"))
    assert chain(run.flow) is None
    assert chain(Flow("f") >> task(first)[2]) is None


def test_a_flow_that_cannot_run_says_so() -> None:
    """A circle is pyoco's deadlock error."""
    run = Run(first, second).in_a_row()
    run.tasks[0].dependencies.add(run.tasks[1])
    end = ending(run.execute())
    assert isinstance(end, Raised)
    assert "cycle" in end.error


def test_a_loop_tells_every_turn() -> None:
    """A task that runs three times starts three times."""
    run = Run()
    run.flow = Flow("f") >> task(first)[3]
    events = run.execute()
    assert [event.task for event in events if isinstance(event, TaskStarted)] == ["first"] * 3
    assert [event.status for event in events if isinstance(event, TaskEnded)] == [TaskStatus.SUCCEEDED] * 3
    assert [event.text for event in events if isinstance(event, TaskLogged)] == ["one\n"] * 3
