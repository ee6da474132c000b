"""The board of workers and those who follow it."""

from __future__ import annotations

import anyio

from pyoco_runtime.bells import Bell
from pyoco_runtime.model.worker import WorkerRecord, WorkerState
from pyoco_runtime.worker_board import WorkerBoard
from tests.unit.actors.support import in_virtual_time


def _record(worker_id: str = "w") -> WorkerRecord:
    return WorkerRecord(worker_id=worker_id, instance_id="i", state=WorkerState.IDLE)


async def _is_told(follower: Bell) -> bool:
    """Whether something has changed since it was asked last."""
    with anyio.move_on_after(1) as waited:
        await follower.next()
    return not waited.cancelled_caught


@in_virtual_time
async def test_a_follower_is_told_once_of_many_changes() -> None:
    """However slow it is; what was before it came is none of its business."""
    board = WorkerBoard()
    board.put(_record("before"), 1)
    with board.following() as follower:
        assert not await _is_told(follower)
        for revision in range(2, 1000):
            board.put(_record(), revision)
        assert await _is_told(follower)
        assert not await _is_told(follower)
        board.remove("w", 1000)
        assert await _is_told(follower)


@in_virtual_time
async def test_old_news_wake_nobody_and_being_behind_does() -> None:
    """Whoever shows the list also shows whether it is old."""
    board = WorkerBoard()
    board.put(_record(), 5)
    with board.following() as follower:
        board.put(_record(), 5)
        board.remove("w", 4)
        board.remove("nobody", 9)
        assert not await _is_told(follower)
        board.begin_load()
        assert await _is_told(follower)
        board.end_load()
        assert await _is_told(follower)
        assert board.behind is None
        assert len(board.index) == 0
        board.lose("gone", 1.0)
        assert await _is_told(follower)
        assert board.behind is not None


@in_virtual_time
async def test_a_change_while_a_follower_is_busy_or_cancelled_is_not_lost() -> None:
    """It is told at the next call."""
    board = WorkerBoard()
    with board.following() as follower, board.following() as other:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await follower.next()
        board.put(_record(), 1)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await follower.next()
        assert await _is_told(follower)
        assert await _is_told(other)
        assert board.followers == 2
    assert board.followers == 0
