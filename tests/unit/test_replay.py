"""A dead letter becomes a new run."""

from __future__ import annotations

from typing import Any

import pytest

from pyoco_runtime.errors import NatsUnavailable, NotReplayable
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.wire import snapshot_to
from pyoco_runtime.ports import StoredLetter
from pyoco_runtime.replay import Replay
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.submitter import Submitter
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from tests.unit.actors.support import in_virtual_time

A, B = Principal("key-a", "a", False), Principal("key-b", "b", False)


class Desk:
    """A server and what replays on it."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        process = self.server.process("gateway")
        submitter = Submitter(process.run_store, process.work_queue, process.promises, virtual_clock, lambda: "new")
        self.replay = Replay(submitter, RunKeeper(process.run_store, virtual_clock))

    def write(self, **fields: Any) -> None:
        values = {"run_id": "old", "flow_name": "f", "tag": "t", "status": RunStatus.FAILED, **fields}
        self.server.write_run("old", snapshot_to(RunSnapshot(**values), 262144)[0])

    def made(self) -> RunSnapshot:
        found = self.server.snapshot("new")
        assert found is not None
        return found.snapshot


def letter(**fields: Any) -> StoredLetter:
    values: dict[str, Any] = {"timestamp": 1.0, "reason": Reason.EXECUTION_ERROR, "error": "bad", "run_id": "old"}
    return StoredLetter(7, DeadLetter(**{**values, **fields}))


def job(**fields: Any) -> Job:
    return Job(**{"run_id": "old", "flow_name": "f", "tag": "t", "submitted_at": 1.0, **fields})


@in_virtual_time
async def test_the_job_of_the_letter_counts() -> None:
    """More than what the snapshot says now; the origin is named, of the job's own extras nothing is taken over."""
    desk = Desk()
    desk.write(flow_name="else", tenant_id="a")
    wanted = job(params={"x": 1}, tags=("p", "q"), workflow_yaml="text", tenant_id="b", extra={"replay_of": "older"})
    await desk.replay.replay(letter(job=wanted), A)
    made = desk.made()
    assert (made.flow_name, made.params, made.tags, made.tenant_id) == ("f", {"x": 1}, ("p", "q"), "a")
    assert made.extra == {"replay_of": "old", "replay_of_letter": 7}
    assert made.status is RunStatus.PENDING
    assert made.workflow_yaml_bytes == 4


@in_virtual_time
async def test_without_tags_the_tag_is_the_tags() -> None:
    """As with a new submission."""
    desk = Desk()
    await desk.replay.replay(letter(job=job()), None)
    assert (desk.made().tag, desk.made().tags) == ("t", ("t",))


@in_virtual_time
async def test_without_a_job_the_run_is_asked() -> None:
    """The peer writes letters without one; a run without a tag goes to the default."""
    desk = Desk()
    desk.write(params={"y": 2}, tag=None, tags=("z",))
    await desk.replay.replay(letter(), None)
    assert (desk.made().params, desk.made().tag, desk.made().tags) == ({"y": 2}, "default", ("z",))


@pytest.mark.parametrize(
    ("found", "run", "why"),
    [
        (letter(run_id=None), None, "was no job"),
        (letter(), None, "its run is gone"),
        (letter(), {"tenant_id": "b"}, "its run is gone"),
        (letter(), {"tenant_id": "a", "workflow_yaml_sha256": "abc"}, "stored nowhere"),
        (letter(job=job(tag="a.b")), None, "tag: "),
        (letter(job=job(flow_name="x" * 300)), None, "flow_name: "),
    ],
)
@in_virtual_time
async def test_what_cannot_be_replayed(found: StoredLetter, run: dict[str, Any] | None, why: str) -> None:
    """It says why, also if the run is of another tenant: then it is gone."""
    desk = Desk()
    if run is not None:
        desk.write(**run)
    with pytest.raises(NotReplayable, match=why):
        await desk.replay.replay(found, A)
    assert desk.server.snapshot("new") is None


@pytest.mark.parametrize("operation", ["run_store.create", "queue.publish"])
@in_virtual_time
async def test_a_hiccup_leaves_nothing(operation: Any) -> None:
    """As with a new submission."""
    desk = Desk()
    desk.server.faults.next(operation, Lost.BEFORE)
    with pytest.raises(NatsUnavailable):
        await desk.replay.replay(letter(job=job()), B)
    assert desk.server.snapshot("new") is None
