"""The feed of open runs, read off the run board."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.board_changes import IndexedRunStore
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.open_runs import OpenRun, OpenRuns
from pyoco_runtime.model.reconcile import Limits
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import failed
from pyoco_runtime.ports import CaughtUp, RunChange, RunChanged, RunChanges, RunRemoved
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from tests.unit.actors.support import in_virtual_time


def waiting(run_id: str, **fields: Any) -> RunSnapshot:
    """A run that its worker has not yet begun."""
    run = RunSnapshot(
        run_id=run_id,
        flow_name="f",
        status=RunStatus.PENDING,
        tag="t",
        submitted_at=5.0,
        heartbeat_at=5.0,
        updated_at=6.0,
    )
    return evolve(run, **fields)


RUNNING = waiting("a", status=RunStatus.RUNNING, attempt=Attempt(7, 2), worker_id="w", start_time=6.0)


def board_with(*runs: RunSnapshot) -> RunBoard:
    """A board that has caught up."""
    board = RunBoard()
    board.begin_load()
    for revision, run in enumerate(runs, 1):
        board.put(run, revision)
    board.end_load()
    return board


def store_on(board: RunBoard) -> IndexedRunStore:
    return IndexedRunStore(MemoryJetStream().process("p").run_store, board)


async def told(changes: RunChanges) -> list[RunChange]:
    """All until it has told everything."""
    found: list[RunChange] = []
    while not isinstance(change := await changes.next(), CaughtUp):
        found.append(change)
    return found


def kept(run: RunSnapshot, revision: int) -> OpenRun:
    """What the reconciler keeps of it."""
    runs = OpenRuns(Limits())
    runs.note(run, revision, 0.0)
    found = runs.take_due(1e9)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "run",
    [
        waiting("a"),
        RUNNING,
        evolve(RUNNING, submitted_at=None),
        waiting("a", submitted_at=None),
        waiting("a", submitted_at=None, heartbeat_at=None),
        waiting("a", status=RunStatus.CANCELLING, submitted_at=None, heartbeat_at=None),
        waiting("a", tag=None),
    ],
)
@in_virtual_time
async def test_it_tells_what_the_reconciler_needs(run: RunSnapshot) -> None:
    """As much as the snapshot itself would."""
    async with store_on(board_with(run)).changes() as changes:
        (change,) = await told(changes)
        assert isinstance(change, RunChanged)
        assert kept(change.stored.snapshot, change.stored.revision) == kept(run, 1)


@in_virtual_time
async def test_only_runs_that_are_not_over_are_told_first() -> None:
    """A hundred thousand that are over cost nothing."""
    done = failed(waiting("b"), "boom", 9.0)
    async with store_on(board_with(done, waiting("a"))).changes() as changes:
        assert [change.stored.snapshot.run_id for change in await told(changes) if isinstance(change, RunChanged)] == [
            "a"
        ]


@in_virtual_time
async def test_then_every_change_the_latest_of_each_run() -> None:
    """A run that ends is gone from the open ones; a reader that was slow hears of each run once."""
    board = board_with(waiting("a"), waiting("b"))
    async with store_on(board).changes() as changes:
        await told(changes)
        board.put(RUNNING, 5)
        board.put(failed(RUNNING, "boom", 9.0), 6)
        board.put(waiting("c"), 7)
        board.remove("b", 8)
        assert await changes.next() == RunRemoved("a", 6)
        change = await changes.next()
        assert isinstance(change, RunChanged)
        assert change.stored.snapshot.run_id == "c"
        assert await changes.next() == RunRemoved("b", 8)


@in_virtual_time
async def test_it_is_lost_with_the_boards_own_feed_and_opens_when_that_has_caught_up() -> None:
    """What was missed meanwhile is told by the new one."""
    board = board_with(waiting("a"))
    async with store_on(board).changes() as changes:
        await told(changes)
        board.lose("gone", 1.0)
        with pytest.raises(NatsUnavailable):
            await changes.next()
    with anyio.move_on_after(5) as scope:
        async with store_on(board).changes():
            pass
    assert scope.cancelled_caught
    board.begin_load()
    board.put(waiting("a"), 1)
    board.put(waiting("d"), 9)
    board.end_load()
    async with store_on(board).changes() as changes:
        assert len(await told(changes)) == 2
