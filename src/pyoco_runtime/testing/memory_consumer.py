"""One durable pull consumer of the work queue in memory: who has which message, and until when."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping

import anyio
from attrs import define, field, frozen

HAIR_SEC = 1e-9  # a timer may ring that much early, as asyncio's do


@frozen
class ConsumerSettings:
    """How a consumer is made when it is missing."""

    ack_wait_sec: float = 30.0
    max_deliver: int = 20
    max_ack_pending: int = 200


@frozen
class Message:
    """A message on the work queue."""

    seq: int
    tag: str
    subject: str
    data: bytes
    stored_at: float
    """In unix seconds."""


@frozen
class Handed:
    """One delivery of a message."""

    message: Message
    delivery: int


@define(eq=False)
class PullRequest:
    """Somebody who waits for one message. The bell rings when it came, and when it is time to look again."""

    by: str
    handed: Handed | None = None
    bell: anyio.Event = field(factory=anyio.Event)


class MemoryConsumer:
    """State over a given `now`; nothing happens by itself. Whoever waits looks again at `next_due`."""

    def __init__(
        self, settings: ConsumerSettings, messages: Mapping[int, Message], told: Callable[[Handed, str], None]
    ) -> None:
        """`messages` is what the stream holds at each moment; `told` hears of every delivery and its receiver."""
        self.settings = settings
        self._messages = messages
        self._told = told
        self._fresh: deque[int] = deque()
        self._again: deque[int] = deque()
        self._due: dict[int, float] = {}
        self._deliveries: dict[int, int] = {}
        self._requests: list[PullRequest] = []

    # -- what the stream says ------------------------------------------------------------------------------------------

    def add(self, seq: int, now: float) -> None:
        """A new message is there."""
        self._fresh.append(seq)
        self.advance(now)

    def forget(self, seq: int, now: float) -> None:
        """The message is gone from the stream."""
        self._due.pop(seq, None)
        self._deliveries.pop(seq, None)
        if seq in self._again:
            self._again.remove(seq)
        self.advance(now)  # there may be room under max_ack_pending now

    # -- what those who pull say ---------------------------------------------------------------------------------------

    def ask(self, request: PullRequest, now: float) -> None:
        """Wait in line for one message."""
        self._requests.append(request)
        self.advance(now)

    def withdraw(self, request: PullRequest) -> None:
        """Stop waiting."""
        if request in self._requests:
            self._requests.remove(request)

    def fetch(self, limit: int, by: str, now: float) -> list[Handed]:
        """At most `limit` that can be had at once, after those who wait in line."""
        self.advance(now)
        found: list[Handed] = []
        while len(found) < limit and (handed := self._next(by, now)) is not None:
            found.append(handed)
        return found

    def give_back(self, seq: int, delay_sec: float, now: float) -> None:
        """Deliver it again after a pause; says nothing about messages that nobody holds."""
        self._expire(now)
        if seq not in self._due:
            return
        if delay_sec > 0:
            self._again = deque(each for each in self._again if each != seq)
            self._due[seq] = now + delay_sec
        elif seq not in self._again:
            self._again.append(seq)  # if it is used up, the server finds that out when somebody pulls
        self.advance(now)
        self._ring()

    def progress(self, seq: int, now: float) -> None:
        """Whoever holds it now lives: the ack wait begins anew, unless it has passed already."""
        self._expire(now)
        if seq in self._due:
            self._due[seq] = now + self.settings.ack_wait_sec

    def redeliver_now(self, seq: int, now: float) -> None:
        """Behave as if its ack wait had passed."""
        if seq in self._due:
            self._due[seq] = now
            self.advance(now)

    # -- what time does ------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do all that is due: take back what nobody gave a sign of life for, and serve those who wait, in order."""
        self._expire(now)
        while self._requests and (handed := self._next(self._requests[0].by, now)) is not None:
            request = self._requests.pop(0)
            request.handed = handed
            request.bell.set()

    def next_due(self) -> float:
        """When to look again."""
        return min((due for seq, due in self._due.items() if seq not in self._again), default=math.inf)

    def delivery_of(self, seq: int) -> int:
        """How often it was delivered."""
        return self._deliveries.get(seq, 0)

    def waiting(self) -> list[int]:
        """The messages that were never delivered, oldest first."""
        return [seq for seq in self._fresh if seq in self._messages]

    def in_hand(self, now: float) -> int:
        """How many were delivered, and are neither settled nor given up."""
        self.advance(now)
        return len(self._due)

    def stuck(self, now: float) -> list[int]:
        """The messages whose deliveries are used up, oldest first."""
        self.advance(now)
        return sorted(seq for seq in self._deliveries if seq not in self._due and seq in self._messages)

    def _expire(self, now: float) -> None:
        late = sorted((due, seq) for seq, due in self._due.items() if due <= now + HAIR_SEC and seq not in self._again)
        for _, seq in late:
            if self._is_used_up(seq):
                del self._due[seq]  # it stays in the stream, and nobody will see it again
            else:
                self._again.append(seq)

    def _is_used_up(self, seq: int) -> bool:
        return 0 < self.settings.max_deliver <= self._deliveries[seq]

    def _next(self, by: str, now: float) -> Handed | None:
        while self._again:
            seq = self._again.popleft()
            if not self._is_used_up(seq):
                return self._hand(seq, by, now)
            del self._due[seq]
        if 0 < self.settings.max_ack_pending <= len(self._due):
            return None
        while self._fresh:
            seq = self._fresh.popleft()
            if seq in self._messages:
                return self._hand(seq, by, now)
        return None

    def _hand(self, seq: int, by: str, now: float) -> Handed:
        self._deliveries[seq] = self._deliveries.get(seq, 0) + 1
        self._due[seq] = now + self.settings.ack_wait_sec
        handed = Handed(self._messages[seq], self._deliveries[seq])
        self._told(handed, by)
        self._ring()
        return handed

    def _ring(self) -> None:
        """The next moment to look may be nearer than those who wait think."""
        for request in self._requests:
            request.bell.set()
