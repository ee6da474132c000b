"""The board of dead letters."""

from __future__ import annotations

from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.letter_index import LetterFilter


def _letter(timestamp: float) -> DeadLetter:
    return DeadLetter(timestamp=timestamp, reason=Reason.LOST_JOB, error=None)


def _is_current(board: LetterBoard) -> bool:
    return board.behind is None


def test_what_is_told_is_kept_until_it_is_too_old() -> None:
    """With every new letter, and whenever all was told anew."""
    board = LetterBoard(max_age_sec=10.0)
    board.begin_load()
    board.put(1, _letter(0.0), 5.0)
    board.put(2, _letter(8.0), 9.0)
    board.end_load(9.0)
    assert _is_current(board)
    assert board.index.count() == 2
    board.put(3, _letter(11.0), 11.0)
    assert [entry.seq for entry in board.index.query(LetterFilter(), 10)] == [3, 2]
    board.lose("gone", 12.0)
    assert not _is_current(board)
    board.begin_load()
    board.put(3, _letter(11.0), 12.0)
    board.end_load(30.0)
    assert board.index.count() == 0


def test_there_are_never_more_than_it_may_hold() -> None:
    """The oldest fall out."""
    board = LetterBoard(max_letters=2)
    for seq in range(1, 5):
        board.put(seq, _letter(0.0), 0.0)
    assert [entry.seq for entry in board.index.query(LetterFilter(), 10)] == [4, 3]
    assert board.index.is_partial
