"""The actor that tells the letter board which dead letters there are."""

from __future__ import annotations

import logging
from typing import assert_never

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.ports import CaughtUp, Clock, DeadLetters, LetterChange, LetterChanges, Link, StoredLetter

_log = logging.getLogger(__name__)

RETRY_SEC = 0.5  # when the link says up and the feed fails all the same
TURN = 64  # letters; a feed that has a batch at hand never waits by itself


class LetterIndexer:
    """While it is away the board keeps what it has, and says so."""

    def __init__(self, board: LetterBoard, letters: DeadLetters, link: Link, clock: Clock) -> None:
        self._board = board
        self._letters = letters
        self._link = link
        self._clock = clock

    async def run(self, context: Context) -> None:
        """Follow all dead letters until asked to stop; a feed that is lost is opened anew."""
        context.ready()
        with context.until_stopping():
            while True:
                await self._link.wait_up()
                try:
                    async with self._letters.changes() as feed:
                        await self._follow(feed)
                except NatsUnavailable as error:
                    _log.debug("the feed of dead letters was lost: %s; opening it again", error)
                    self._board.lose(f"the feed of dead letters was lost: {error}", self._clock())
                    await anyio.sleep(RETRY_SEC)

    async def _follow(self, feed: LetterChanges) -> None:
        self._board.begin_load()
        try:
            while True:
                for _ in range(TURN):
                    self._tell(await feed.next())
                await checkpoint()
        finally:
            self._board.lose("nobody follows the feed of dead letters", self._clock())

    def _tell(self, change: LetterChange) -> None:
        match change:
            case StoredLetter(seq, letter):
                self._board.put(seq, letter, self._clock())
            case CaughtUp():
                self._board.end_load(self._clock())
            case _:
                assert_never(change)
