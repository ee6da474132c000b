"""Dead letters on their way to the publisher."""

from __future__ import annotations

from collections import deque

import anyio
from attrs import field, frozen

from pyoco_runtime.model.dead_letter import DeadLetter

CAPACITY = 1000  # letters; about 1 MB while NATS is away


@frozen(eq=False)
class Posted:
    """A letter in the box, and the word that it has been stored."""

    letter: DeadLetter
    sent: anyio.Event = field(factory=anyio.Event)


class Letterbox:
    """Bounded and in order. A letter stays in until it is stored, so that the publisher can be restarted alone."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._letters: deque[Posted] = deque()
        self._came = anyio.Event()
        self._left = anyio.Event()

    def __len__(self) -> int:
        return len(self._letters)

    async def post(self, letter: DeadLetter) -> Posted:
        """Put it in; a full box makes the sender wait."""
        while len(self._letters) >= self._capacity:
            if self._left.is_set():  # else others wait for it already
                self._left = anyio.Event()
            await self._left.wait()
        posted = Posted(letter)
        self._letters.append(posted)
        self._came.set()
        return posted

    async def first(self) -> Posted:
        """Wait for the oldest letter and look at it."""
        while not self._letters:
            if self._came.is_set():
                self._came = anyio.Event()
            await self._came.wait()
        return self._letters[0]

    def take_out(self, posted: Posted) -> None:
        """It has been stored."""
        if self._letters and self._letters[0] is posted:
            self._letters.popleft()
        posted.sent.set()
        self._left.set()
