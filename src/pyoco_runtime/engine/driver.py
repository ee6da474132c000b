"""One run of one flow: pyoco's engine, driven so that it tells what happens while it happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyoco.core.context import Context
from pyoco.core.engine import Engine
from pyoco.core.models import Flow, RunContext, Task, TaskState
from pyoco.core.models import RunStatus as PyocoStatus
from pyoco.trace.backend import TraceBackend

from pyoco_runtime.engine.capture import CAPTURE, listening
from pyoco_runtime.engine.chain import as_chain, in_order
from pyoco_runtime.engine.graph import graph_of
from pyoco_runtime.engine.outbox import Outbox
from pyoco_runtime.engine.plain import VALUE_MAX_BYTES, clipped, message, plain, plain_mapping, trace
from pyoco_runtime.errors import PyocoError
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
    FlowNotFound,
    FlowStarted,
    Raised,
    Stopped,
    TaskEnded,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus

FindFlow = Callable[[Job], Flow]
"""Gives the flow of a job. Raises NoSuchFlow, PyocoError, and whatever user code raises."""

_ENDED = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED})


class NoSuchFlow(PyocoError):
    """The user's resolver does not have the flow."""


class TaskQuit(Exception):
    """A task raised what ends a program, as sys.exit() does; here it ends the task."""


class _Silent(TraceBackend):  # type: ignore[misc] # pyoco has no types
    """We look at the tasks ourselves: pyoco's trace calls come before the results are recorded."""

    def on_flow_start(self, flow_name: str, run_id: str | None = None) -> None:
        """Nothing."""

    def on_flow_end(self, flow_name: str) -> None:
        """Nothing."""

    def on_node_start(self, node_name: str) -> None:
        """Nothing."""

    def on_node_end(self, node_name: str, duration_ms: float) -> None:
        """Nothing."""

    def on_node_error(self, node_name: str, error: Exception) -> None:
        """Nothing."""


_SILENT = _Silent()


class Driver(Engine):  # type: ignore[misc] # pyoco has no types
    """Executes one job in the calling thread and reports to the outbox, FlowEnded last; `stop` comes from others."""

    def __init__(
        self, job: Job, attempt: Attempt, params: dict[str, Any], outbox: Outbox, value_max_bytes: int = VALUE_MAX_BYTES
    ) -> None:
        super().__init__(trace_backend=_SILENT)
        self._job = job
        self._attempt = attempt
        self._outbox = outbox
        self._value_max_bytes = value_max_bytes
        self._told: dict[str, TaskState] = {}
        self._run = RunContext(
            run_id=job.run_id, flow_name=job.flow_name, params=params, metadata=_metadata(job, attempt)
        )

    def stop(self) -> None:
        """Ask the flow to stop, before it has begun or while it runs."""
        # Engine.cancel knows only runs that have begun.
        if self._run.status is PyocoStatus.RUNNING:
            self._run.status = PyocoStatus.CANCELLING

    def execute(self, find: FindFlow) -> None:
        """Find the flow and execute it; raises nothing that user code raises."""
        try:
            ending = self._execute(find)
        except BaseException as error:  # noqa: BLE001 - user code runs here, and sys.exit() must not end the runner
            ending = Raised(message(_quit(error)), trace(error))
        self._outbox.add(FlowEnded(ending, time.time()))

    def _execute(self, find: FindFlow) -> Ending:
        if self._run.status is not PyocoStatus.RUNNING:
            return Stopped()
        try:
            flow = find(self._job)
        except NoSuchFlow as error:
            return FlowNotFound(str(error))
        except PyocoError as error:  # made for the person who wrote the flow: our own frames would only confuse
            return Raised(str(error))
        order = in_order(flow)
        self._outbox.add(FlowStarted(tuple(task.name for task in order), graph_of(flow, order)))
        try:
            with CAPTURE.installed():
                self._drive(flow, order)
        finally:
            self._tell_the_rest()
        # pyoco leaves CANCELLING behind when the request came while the last tasks ran.
        was_stopped = self._run.status in (PyocoStatus.CANCELLING, PyocoStatus.CANCELLED)
        return Stopped() if was_stopped else Completed()

    def _drive(self, flow: Flow, order: list[Task]) -> None:
        run = self._run
        run.flow_name = flow.name
        for task in order:
            run.tasks[task.name] = TaskState.PENDING
            run.ensure_task_record(task.name)
        env = {"PYOCO_RUN_ID": self._job.run_id, "PYOCO_ATTEMPT": str(self._attempt)}
        context = Context(params=run.params, env=env, run_context=run)
        chain = as_chain(flow, order)
        if chain is None:
            # Not Engine.run, which exchanges sys.stdout for the whole process.
            self._run_flow(flow, context, run, None)
        else:
            self._run_chain(chain, context)

    def _run_chain(self, chain: list[Task], context: Context) -> None:
        for task in chain:
            if self._run.status is not PyocoStatus.RUNNING:
                self._mark_pending_tasks_cancelled(self._run)
                self._run.status = PyocoStatus.CANCELLED
                return
            self._execute_task(task, context)

    def _execute_task(self, task: Task, context: Context, log_capture: None = None) -> None:
        """Execute a task in this thread, as the engine asks us to."""
        outbox, name = self._outbox, task.name
        outbox.add(TaskStarted(name, time.time()))
        try:
            with listening(lambda stream, text: outbox.printed(name, stream, text)):
                super()._execute_task(task, context, None)
        except Exception:
            raise
        except BaseException as error:
            # pyoco answers only to Exception: make it one, so that the task's policies hold for it too.
            quit_ = _quit(error)
            self._mark_failed(name, quit_, error)
            raise quit_ from error
        finally:
            self._tell(name, self._run.tasks[name])

    def _mark_failed(self, name: str, error: Exception, cause: BaseException) -> None:
        record = self._run.ensure_task_record(name)
        record.state = self._run.tasks[name] = TaskState.FAILED
        record.ended_at = time.time()
        record.duration_ms = (record.ended_at - record.started_at) * 1000
        record.error = message(error)
        record.traceback = trace(cause)

    def _tell_the_rest(self) -> None:
        """pyoco cancels tasks, and fails those behind a failed one, without a word."""
        for name, state in self._run.tasks.items():
            if state in _ENDED and self._told.get(name) is not state:
                self._tell(name, state)

    def _tell(self, name: str, state: TaskState) -> None:
        record = self._run.ensure_task_record(name)
        limit = self._value_max_bytes
        inputs, some_input = plain_mapping(record.inputs, limit)
        output, the_output = plain(record.output if state is TaskState.SUCCEEDED else None, limit)
        artifacts, some_artifact = plain_mapping(record.artifacts, limit)
        self._told[name] = state
        self._outbox.add(
            TaskEnded(
                task=name,
                status=TaskStatus(state.value),
                started_at=record.started_at,
                ended_at=record.ended_at,
                duration_ms=record.duration_ms,
                error=clipped(record.error) if record.error is not None else None,
                traceback=clipped(record.traceback) if record.traceback is not None else None,
                inputs=inputs,
                output=output,
                artifacts=artifacts,
                truncated=some_input or the_output or some_artifact,
            )
        )


def _metadata(job: Job, attempt: Attempt) -> dict[str, Any]:
    """What user code may know about its run; with run_id and attempt it can make its effects idempotent."""
    metadata: dict[str, Any] = {
        "run_id": job.run_id,
        "attempt": str(attempt),
        "tag": job.tag,
        "tags": list(job.tags) or [job.tag],
        "tenant_id": job.tenant_id,
    }
    for name in ("api_key_id", "workflow_yaml_sha256", "workflow_yaml_bytes"):
        if (value := getattr(job, name)) is not None:
            metadata[name] = value
    return metadata


def _quit(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return TaskQuit(f"{type(error).__name__}: {message(error)}")
