"""Reading and cancelling single runs."""

from __future__ import annotations

from typing import Any

import pytest

from pyoco_runtime.errors import NatsUnavailable, RunNotFound
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.wire import snapshot_to
from pyoco_runtime.run_keeper import RunKeeper, may_see
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from tests.unit.actors.support import in_virtual_time

A, B = Principal("key-a", "a", False), Principal("key-b", "b", True)


class Desk:
    """A server with a run of tenant a, and a keeper."""

    def __init__(self, status: RunStatus = RunStatus.RUNNING, **fields: Any) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway")
        self.keeper = RunKeeper(self.process.run_store, virtual_clock)
        run = RunSnapshot(run_id="r", flow_name="f", status=status, **{"tenant_id": "a", **fields})
        self.revision = self.server.write_run("r", snapshot_to(run, 262144)[0])

    def stored(self) -> RunSnapshot:
        found = self.server.snapshot("r")
        assert found is not None
        return found.snapshot


@pytest.mark.parametrize(
    ("who", "tenant", "right"),
    [(None, None, True), (None, "a", True), (A, "a", True), (A, "b", False), (A, None, False), (B, "a", False)],
)
def test_who_may_see_what(who: Principal | None, tenant: str | None, right: bool) -> None:
    """Without API keys everything, with them what is of one's tenant; an admin is no exception."""
    assert may_see(who, tenant) is right


@in_virtual_time
async def test_another_tenants_run_is_as_absent_as_one_that_never_was() -> None:
    """The two errors cannot be told apart."""
    desk = Desk()
    assert (await desk.keeper.get("r", A)).revision == desk.revision
    with pytest.raises(RunNotFound) as theirs:
        await desk.keeper.get("r", B)
    with pytest.raises(RunNotFound) as none:
        await desk.keeper.get("x", B)
    assert str(theirs.value) == str(none.value) == ""
    with pytest.raises(RunNotFound):
        await desk.keeper.cancel("r", B)
    assert desk.stored().status is RunStatus.RUNNING


@in_virtual_time
async def test_a_hiccup_says_nothing_about_the_run() -> None:
    """NatsUnavailable, not RunNotFound."""
    desk = Desk()
    desk.server.faults.next("run_store.get", Lost.AFTER)
    with pytest.raises(NatsUnavailable):
        await desk.keeper.get("r", A)


@in_virtual_time
async def test_cancelling_writes_once() -> None:
    """The first request counts, with its time, its author and its reason."""
    desk = Desk()
    first = await desk.keeper.cancel("r", A, "why")
    assert first == desk.stored()
    assert (first.status, first.cancel_requested_by) == (RunStatus.CANCELLING, "api_key:key-a")
    assert first.extra == {"cancel_reason": "why"}
    revision = desk.keeper.last_revision
    assert revision > desk.revision
    assert await desk.keeper.cancel("r", A, "else") == first
    assert desk.keeper.last_revision == revision


@in_virtual_time
async def test_a_request_of_another_program_is_carried_out() -> None:
    """It has noted the request and not the status: the status follows, the rest stays."""
    desk = Desk(cancel_requested_at=5.0, cancel_requested_by="theirs")
    found = await desk.keeper.cancel("r", A, "why")
    assert (found.status, found.cancel_requested_at) == (RunStatus.CANCELLING, 5.0)
    assert (found.cancel_requested_by, found.extra) == ("theirs", {})


@pytest.mark.parametrize("status", [each for each in RunStatus if each.is_terminal])
@in_virtual_time
async def test_a_run_that_is_over_is_not_written(status: RunStatus) -> None:
    """Whoever asks is told how it ended."""
    desk = Desk(status)
    assert (await desk.keeper.cancel("r", A)).status is status
    assert desk.server.runs.bucket.revision_of("r") == desk.revision


@pytest.mark.parametrize("conflicts", [1, 10])
@in_virtual_time
async def test_conflicts_are_decided_anew(conflicts: int) -> None:
    """However many."""
    desk = Desk()
    for _ in range(conflicts):
        desk.server.faults.conflict_next("r")
    assert (await desk.keeper.cancel("r", A)).status is RunStatus.CANCELLING
    assert desk.stored().status is RunStatus.CANCELLING


@in_virtual_time
async def test_a_run_that_vanishes_meanwhile_is_not_found() -> None:
    """It is not written again."""
    desk = Desk()
    real = desk.process.run_store.update

    async def late(snapshot: RunSnapshot, revision: int) -> int:
        desk.server.runs.bucket.write("r", None, None)
        return await real(snapshot, revision)

    desk.process.run_store.update = late  # type: ignore[method-assign]  # somebody is faster
    with pytest.raises(RunNotFound):
        await desk.keeper.cancel("r", A)
    assert desk.server.snapshot("r") is None
