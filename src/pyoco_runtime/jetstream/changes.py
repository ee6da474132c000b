"""A feed of a stream as a feed of changes: when everything has been told is one of them."""

from __future__ import annotations

from typing import Generic, TypeVar

from pyoco_runtime.jetstream.feed import Feed, FeedMessage
from pyoco_runtime.ports import CaughtUp

T = TypeVar("T")


class Changes(Generic[T]):
    """Reads each message with `_change`; it is lost when the link changes: open a new one."""

    def __init__(self, feed: Feed, prefix: str) -> None:
        """`prefix` is what stands before the keys in the subjects."""
        self._feed = feed
        self._prefix = prefix
        self._has_told_all = False

    async def next(self) -> T | CaughtUp:
        """The next change. Raises NatsUnavailable when the feed is lost."""
        while True:
            if self._feed.is_caught_up and not self._has_told_all:
                self._has_told_all = True
                return CaughtUp()
            message = await self._feed.next()
            change = None if message is None else self._change(message.subject[len(self._prefix) :], message)
            if change is not None:
                return change

    def _change(self, key: str, message: FeedMessage) -> T | None:
        """What the message says; None for one that cannot be read."""
        raise NotImplementedError
