"""What travels between a runner and its child processes: JSON values, each after its length in four bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, assert_never

from attrs import frozen

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.offer import Offer
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
    FlowNotFound,
    FlowStarted,
    Killed,
    Progress,
    Raised,
    Stopped,
    TaskEnded,
    TaskLogged,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus

_LENGTH = struct.Struct(">I")


@frozen
class SetUp:
    """To the child, first: what it needs in order to be ready."""

    resolver: str | None
    overlay: tuple[str, ...]
    path: tuple[str, ...]
    callable_allow: tuple[str, ...]
    is_scout: bool = False
    """It takes no orders: it tells what it has found, and ends."""


@frozen
class Ready:
    """From the child: it takes orders."""


@frozen
class Unfit:
    """From the child: it cannot be used, and ends."""

    problem: str


@frozen
class Found:
    """From a scout: what children that are set up like it can run."""

    offer: Offer


@frozen
class Execute:
    """To the child: execute this."""

    number: int
    job: Job
    attempt: Attempt


@frozen
class Cancel:
    """To the child: the execution of this number shall stop."""

    number: int


@frozen
class Report:
    """From the child: what has happened, in order."""

    events: tuple[Progress, ...]


Frame = SetUp | Ready | Unfit | Found | Execute | Cancel | Report


def packed(frame: Frame) -> bytes:
    """The frame as bytes to send."""
    data = json.dumps(_to_json(frame), separators=(",", ":")).encode()
    return _LENGTH.pack(len(data)) + data


class Unpacker:
    """Bytes as they come in -> frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take the next bytes; gives the frames that are complete with them."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer)
            end = _LENGTH.size + length
            if len(buffer) < end:
                return
            frame = json.loads(buffer[_LENGTH.size : end])
            del buffer[:end]
            yield _from_json(frame)


def _to_json(frame: Frame) -> list[Any]:
    match frame:
        case Report():
            return ["report", [_event_to(event) for event in frame.events]]
        case Execute():
            return ["execute", frame.number, _job_to(frame.job), [frame.attempt.seq, frame.attempt.delivery]]
        case Cancel():
            return ["cancel", frame.number]
        case Ready():
            return ["ready"]
        case Unfit():
            return ["unfit", frame.problem]
        case SetUp():
            return ["set-up", frame.resolver, frame.overlay, frame.path, frame.callable_allow, frame.is_scout]
        case Found():
            return ["found", frame.offer.flows, frame.offer.tasks]
        case _:
            assert_never(frame)


def _from_json(value: list[Any]) -> Frame:
    match value:
        case ["report", events]:
            return Report(tuple(_event_from(event) for event in events))
        case ["execute", number, job, [seq, delivery]]:
            return Execute(number, Job(**{**job, "tags": tuple(job["tags"])}), Attempt(seq, delivery))
        case ["cancel", number]:
            return Cancel(number)
        case ["ready"]:
            return Ready()
        case ["unfit", problem]:
            return Unfit(problem)
        case ["set-up", resolver, overlay, path, allow, is_scout]:
            return SetUp(resolver, tuple(overlay), tuple(path), tuple(allow), is_scout)
        case ["found", flows, tasks]:
            return Found(Offer(*(None if names is None else tuple(names) for names in (flows, tasks))))
        case _:
            raise ValueError(f"no frame of ours: {str(value)[:80]}")


def _job_to(job: Job) -> dict[str, Any]:
    return {
        "run_id": job.run_id,
        "flow_name": job.flow_name,
        "tag": job.tag,
        "submitted_at": job.submitted_at,
        "tags": job.tags,
        "params": dict(job.params),
        "tenant_id": job.tenant_id,
        "api_key_id": job.api_key_id,
        "workflow_yaml": job.workflow_yaml,
        "workflow_yaml_sha256": job.workflow_yaml_sha256,
        "workflow_yaml_bytes": job.workflow_yaml_bytes,
    }


def _event_to(event: Progress) -> list[Any]:
    match event:
        case TaskStarted():
            return ["task-started", event.task, event.at]
        case TaskLogged():
            return ["task-logged", event.task, event.stream, event.text]
        case TaskEnded():
            return ["task-ended", {name: getattr(event, name) for name in _TASK_ENDED}]
        case FlowStarted():
            return ["flow-started", event.tasks, event.graph]
        case FlowEnded():
            return ["flow-ended", _ending_to(event.ending), event.at]
        case _:
            assert_never(event)


_TASK_ENDED = tuple(TaskEnded.__annotations__)


def _event_from(value: list[Any]) -> Progress:
    match value:
        case ["task-started", task, at]:
            return TaskStarted(task, at)
        case ["task-logged", task, stream, text]:
            return TaskLogged(task, stream, text)
        case ["task-ended", fields]:
            fields["status"] = TaskStatus(fields["status"])
            return TaskEnded(**fields)
        case ["flow-started", tasks, graph]:
            return FlowStarted(tuple(tasks), graph)
        case ["flow-ended", ending, at]:
            return FlowEnded(_ending_from(ending), at)
        case _:
            raise ValueError(f"no event of ours: {str(value)[:80]}")


def _ending_to(ending: Ending) -> list[Any]:
    match ending:
        case Completed():
            return ["completed"]
        case Stopped():
            return ["stopped"]
        case Killed():
            return ["killed"]
        case Raised():
            return ["raised", ending.error, ending.traceback]
        case FlowNotFound():
            return ["flow-not-found", ending.error]
        case _:
            assert_never(ending)


def _ending_from(value: list[Any]) -> Ending:
    match value:
        case ["completed"]:
            return Completed()
        case ["stopped"]:
            return Stopped()
        case ["killed"]:
            return Killed()
        case ["raised", error, trace]:
            return Raised(error, trace)
        case ["flow-not-found", error]:
            return FlowNotFound(error)
        case _:
            raise ValueError(f"no ending of ours: {str(value)[:80]}")
