"""The actor that tells the letter board which dead letters there are."""

from __future__ import annotations

from typing import assert_never

from pyoco_runtime.actors.following import Audience, follow
from pyoco_runtime.core import Context
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.ports import CaughtUp, Clock, DeadLetters, LetterChange, Link, StoredLetter


class LetterIndexer:
    """While it is away the board keeps what it has, and says so."""

    def __init__(self, board: LetterBoard, letters: DeadLetters, link: Link, clock: Clock) -> None:
        self._board = board
        self._letters = letters
        self._link = link
        self._clock = clock

    async def run(self, context: Context) -> None:
        """Follow all dead letters until asked to stop; a feed that is lost is opened anew."""
        audience = Audience(self._board.begin_load, lambda why: self._board.lose(why, self._clock()))
        await follow(context, self._link, "dead letters", self._letters.changes, self._tell, audience)

    def _tell(self, change: LetterChange) -> None:
        match change:
            case StoredLetter(seq, letter):
                self._board.put(seq, letter, self._clock())
            case CaughtUp():
                self._board.end_load(self._clock())
            case _:
                assert_never(change)
