"""The snapshot of a run as its one writer keeps it."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.progress import Completed
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import beaten, cancelling, claimed, ended, failed
from pyoco_runtime.model.wire import snapshot_to
from pyoco_runtime.ports import StoredRun
from pyoco_runtime.record import Record
from pyoco_runtime.testing.faults import Faults, Lost
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.run_laws import broken_laws
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.actors.support import in_virtual_time

MINE = Attempt(1, 2)
PENDING = RunSnapshot(run_id="r-1", flow_name="ok", status=RunStatus.PENDING)


class Desk:
    """A server with one run that this attempt has claimed."""

    def __init__(self) -> None:
        self.server = MemoryJetStream(faults=Faults())
        self.store = self.server.process("w-1").run_store

    async def record(self) -> Record:
        mine = claimed(PENDING, "w-1", MINE, 1.0)
        revision = await self.store.create(PENDING)
        return Record(self.store, StoredRun(mine, await self.store.update(mine, revision)), MINE)

    @property
    def snapshot(self) -> RunSnapshot:
        stored = self.server.snapshot("r-1")
        assert stored is not None
        return stored.snapshot

    def write(self, snapshot: RunSnapshot) -> None:
        self.server.write_run("r-1", snapshot_to(snapshot, 262144)[0])


def done(latest: RunSnapshot) -> RunSnapshot:
    return ended(latest, Completed(), 9.0)


@in_virtual_time
async def test_a_write_goes_over_what_this_attempt_wrote_last() -> None:
    """One after the other, without a read."""
    desk = Desk()
    record = await desk.record()
    for now in (2.0, 3.0, 4.0):
        assert await record.write(lambda latest, now=now: beaten(latest, now)) is None  # type: ignore[misc]
    assert desk.snapshot == record.snapshot
    assert desk.snapshot.heartbeat_at == 4.0


@in_virtual_time
async def test_what_others_have_written_is_kept() -> None:
    """A cancel in between: the change is made of the latest, not of what we remember."""
    desk = Desk()
    record = await desk.record()
    desk.write(cancelling(desk.snapshot, 5.0, "somebody"))
    assert await record.write(lambda latest: beaten(latest, 6.0)) is None
    assert (desk.snapshot.status, desk.snapshot.heartbeat_at) == (RunStatus.CANCELLING, 6.0)
    assert await record.write(done) is None
    assert desk.snapshot.status is RunStatus.CANCELLED


@pytest.mark.parametrize("change", [lambda run: beaten(run, 6.0), done])
@in_virtual_time
async def test_a_newer_attempt_is_not_overwritten(change: object) -> None:
    """Neither by a heartbeat nor by the end."""
    desk = Desk()
    record = await desk.record()
    desk.write(claimed(desk.snapshot, "w-2", Attempt(1, 3), 5.0))
    before = desk.snapshot
    lost = await record.write(change)  # type: ignore[arg-type]
    assert lost is not None
    assert lost.settlement is None
    assert desk.snapshot == before


@in_virtual_time
async def test_an_end_by_somebody_else_is_not_overwritten() -> None:
    """Not even by the same kind of end."""
    desk = Desk()
    record = await desk.record()
    desk.write(ended(desk.snapshot, Completed(), 8.0))
    lost = await record.write(done)
    assert lost is not None
    assert desk.snapshot.end_time == 8.0


@in_virtual_time
async def test_our_own_end_whose_answer_was_lost_is_recognised() -> None:
    """It is stored once, and found at the second try."""
    desk = Desk()
    record = await desk.record()
    desk.server.faults.next("run_store.update", Lost.AFTER)
    with pytest.raises(NatsUnavailable):
        await record.write(done)
    assert await record.write(done) is None
    assert desk.snapshot.status is RunStatus.COMPLETED


@in_virtual_time
async def test_a_run_that_is_gone_stays_gone() -> None:
    """It is not created again."""
    desk = Desk()
    record = await desk.record()
    stored = desk.server.snapshot("r-1")
    assert stored is not None
    await desk.store.remove("r-1", stored.revision)
    assert await record.write(done) is not None
    assert await record.read() is not None
    assert desk.server.snapshot("r-1") is None


OTHERS = st.sampled_from(["nothing", "cancel", "newer", "fail", "same", "unaware"])
FATES = st.sampled_from([None, None, Lost.BEFORE, Lost.AFTER])


@given(steps=st.lists(st.tuples(OTHERS, FATES, FATES), max_size=8), end_fates=st.lists(FATES, max_size=3))
def test_whatever_others_write_and_the_network_loses_the_laws_hold(
    steps: list[tuple[str, Lost | None, Lost | None]], end_fates: list[Lost | None]
) -> None:
    """A run that is not lost ends as we say; one that is lost is not written to again."""

    async def main() -> None:
        desk = Desk()
        record = await desk.record()
        lost = None
        for other, fate, read_fate in steps:
            _by_others(desk, other)
            desk.server.faults.next("run_store.update", fate)
            desk.server.faults.next("run_store.get", read_fate)
            with suppress(NatsUnavailable):
                lost = lost or await record.write(lambda latest: beaten(latest, anyio.current_time()))
            if lost is not None:
                break
        desk.server.faults.next("run_store.update", *end_fates)
        while lost is None:
            try:
                lost = await record.write(done)
                break
            except NatsUnavailable:
                pass
        assert desk.snapshot.status.is_terminal or lost is not None
        assert [each for each in broken_laws(desk.server.log) if not each.startswith("somebody")] == []

    run_virtual(main)


def _by_others(desk: Desk, what: str) -> None:
    run = desk.snapshot
    if run.status.is_terminal:
        return
    match what:
        case "cancel":
            desk.write(cancelling(run, 5.0, "x"))
        case "newer":
            desk.write(claimed(run, "w-2", Attempt(1, 3), 5.0))
        case "fail":
            desk.write(failed(run, "lost", 5.0))
        case "same":
            desk.write(run)
        case "unaware":
            desk.write(evolve(run, attempt=None))
