"""The dead letters in memory, and the port to them of one simulated process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.letter_size import letter_within
from pyoco_runtime.model.wire import letter_from
from pyoco_runtime.ports import CaughtUp, Clock, LetterChange, LetterChanges, StoredLetter
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_feed import MemoryFeed
from pyoco_runtime.testing.memory_log import LetterStored, MemoryLog


class MemoryLetters:
    """The stream: plain state, changed at one moment each. Nothing grows too old by itself: `drop` it."""

    def __init__(self, clock: Clock, log: MemoryLog) -> None:
        self.messages: dict[int, bytes] = {}
        """By sequence, oldest first."""
        self._clock = clock
        self._log = log
        self._last_seq = 0
        self._listeners: list[Callable[[int, bytes], None]] = []

    def add(self, data: bytes, by: str) -> int:
        """Store any bytes; returns the sequence. A letter among them is in the log too."""
        self._last_seq += 1
        self.messages[self._last_seq] = data
        letter = _readable(data)
        if letter is not None:
            self._log.add(LetterStored(at=self._clock(), by=by, letter=letter))
        for listener in tuple(self._listeners):
            listener(self._last_seq, data)
        return self._last_seq

    def drop(self, seq: int) -> bool:
        """Remove one; whether it was there."""
        return self.messages.pop(seq, None) is not None

    def letters(self) -> list[StoredLetter]:
        """All that are there and can be read, oldest first."""
        found = ((seq, _readable(data)) for seq, data in self.messages.items())
        return [StoredLetter(seq, letter) for seq, letter in found if letter is not None]

    def listen(self, listener: Callable[[int, bytes], None]) -> Callable[[], None]:
        """Have `listener` called with every new one; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


class MemoryDeadLetters:
    """Implements ports.DeadLetters; what was ever stored is also in the log."""

    def __init__(self, connection: MemoryConnection, stream: MemoryLetters) -> None:
        self._connection = connection
        self._stream = stream

    async def publish(self, letter: DeadLetter) -> None:
        data = letter_within(letter)
        await self._connection.call("dead_letters.publish", lambda: self._stream.add(data, self._connection.name))

    async def get(self, seq: int) -> StoredLetter | None:
        return await self._connection.call("dead_letters.get", lambda: self._read(seq))

    async def drop(self, seq: int) -> bool:
        return await self._connection.call("dead_letters.drop", lambda: self._stream.drop(seq))

    async def count(self) -> int:
        return await self._connection.call("dead_letters.count", lambda: len(self._stream.messages))

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[LetterChanges]:
        feed = await self._connection.call(
            "dead_letters.watch", lambda: MemoryFeed[LetterChange](self._connection, "dead_letters.watch_next")
        )
        for stored in self._stream.letters():
            feed.push(stored)
        feed.push(CaughtUp())
        stop = self._stream.listen(lambda seq, data: _tell(feed, seq, data))
        try:
            with feed.opened():
                yield feed
        finally:
            stop()

    def _read(self, seq: int) -> StoredLetter | None:
        data = self._stream.messages.get(seq)
        return None if data is None else StoredLetter(seq, letter_from(data))


def _tell(feed: MemoryFeed[LetterChange], seq: int, data: bytes) -> None:
    letter = _readable(data)
    if letter is not None:
        feed.push(StoredLetter(seq, letter))


def _readable(data: bytes) -> DeadLetter | None:
    try:
        return letter_from(data)
    except Unreadable:
        return None
