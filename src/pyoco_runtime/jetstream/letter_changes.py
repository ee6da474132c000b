"""The feed of all dead letters."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.feed import Feed
from pyoco_runtime.model.wire import letter_from
from pyoco_runtime.ports import CaughtUp, LetterChange, StoredLetter

_log = logging.getLogger(__name__)


class NatsLetterChanges:
    """Implements ports.LetterChanges over a feed of the stream; it is lost when the link changes: open a new one."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._told = False

    async def next(self) -> LetterChange:
        while True:
            if self._feed.is_caught_up and not self._told:
                self._told = True
                return CaughtUp()
            message = await self._feed.next()
            if message is None:
                continue
            try:
                return StoredLetter(message.seq, letter_from(message.data))
            except Unreadable as error:
                _log.debug("skipped the dead letter %d: %s", message.seq, error)
