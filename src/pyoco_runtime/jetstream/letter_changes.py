"""The feed of all dead letters."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.changes import Changes
from pyoco_runtime.jetstream.feed import FeedMessage
from pyoco_runtime.model.wire import letter_from
from pyoco_runtime.ports import StoredLetter

_log = logging.getLogger(__name__)


class NatsLetterChanges(Changes[StoredLetter]):
    """Implements ports.LetterChanges over a feed of the stream."""

    def _change(self, key: str, message: FeedMessage) -> StoredLetter | None:
        try:
            return StoredLetter(message.seq, letter_from(message.data))
        except Unreadable as error:
            _log.debug("skipped the dead letter %d: %s", message.seq, error)
            return None
