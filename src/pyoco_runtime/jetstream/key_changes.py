"""The feed of all API keys."""

from __future__ import annotations

import logging

from pyoco_runtime.errors import Unreadable
from pyoco_runtime.jetstream.bucket import is_marker
from pyoco_runtime.jetstream.changes import Changes
from pyoco_runtime.jetstream.feed import FeedMessage
from pyoco_runtime.model.wire import key_from
from pyoco_runtime.ports import KeyChanged, KeyRemoved, StoredKey

_log = logging.getLogger(__name__)


class NatsKeyChanges(Changes[KeyChanged | KeyRemoved]):
    """Implements ports.KeyChanges over a feed of the bucket."""

    def _change(self, key: str, message: FeedMessage) -> KeyChanged | KeyRemoved:
        if is_marker(message.headers):
            return KeyRemoved(key, message.seq)
        try:
            return KeyChanged(StoredKey(key_from(message.data, key), message.seq))
        except Unreadable as error:
            _log.warning("the record of an API key cannot be read: %s", error, extra={"api_key_id": key})
            return KeyRemoved(key, message.seq)
