"""The feed of all API keys."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.feed import Feed, FeedMessage
from pyoco_runtime.model.wire import key_from
from pyoco_runtime.ports import CaughtUp, KeyChange, KeyChanged, KeyRemoved, StoredKey

_log = logging.getLogger(__name__)


class NatsKeyChanges:
    """Implements ports.KeyChanges over a feed of the bucket; it is lost when the link changes: open a new one."""

    def __init__(self, feed: Feed, prefix: str) -> None:
        self._feed = feed
        self._prefix = prefix
        self._told = False

    async def next(self) -> KeyChange:
        while True:
            if self._feed.is_caught_up and not self._told:
                self._told = True
                return CaughtUp()
            message = await self._feed.next()
            if message is not None:
                return self._change(message)

    def _change(self, message: FeedMessage) -> KeyChange:
        key_id = message.subject[len(self._prefix) :]
        if is_marker(message.headers):
            return KeyRemoved(key_id, message.seq)
        try:
            return KeyChanged(StoredKey(key_from(message.data, key_id), message.seq))
        except Unreadable as error:
            _log.warning("the record of an API key cannot be read: %s", error, extra={"api_key_id": key_id})
            return KeyRemoved(key_id, message.seq)
