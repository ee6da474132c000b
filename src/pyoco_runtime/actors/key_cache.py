"""The actor that tells the key ring how the API keys change."""

from __future__ import annotations

import logging
from typing import assert_never

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.ports import CaughtUp, KeyChange, KeyChanged, KeyChanges, KeyRemoved, KeyStore, Link

_log = logging.getLogger(__name__)

RETRY_SEC = 0.5  # when the link says up and the feed fails all the same


class KeyCache:
    """A key that is revoked is refused as soon as this actor hears of it. Without it the ring reads more often."""

    def __init__(self, ring: KeyRing, store: KeyStore, link: Link) -> None:
        self._ring = ring
        self._store = store
        self._link = link

    async def run(self, context: Context) -> None:
        """Follow all keys until asked to stop; a feed that is lost is opened anew."""
        context.ready()
        with context.until_stopping():
            while True:
                await self._link.wait_up()
                try:
                    async with self._store.changes() as feed:
                        await self._follow(feed)
                except NatsUnavailable as error:
                    _log.debug("the feed of API keys was lost: %s; opening it again", error)
                    await anyio.sleep(RETRY_SEC)

    async def _follow(self, feed: KeyChanges) -> None:
        self._ring.begin_load()
        try:
            while True:
                self._tell(await feed.next())
        finally:
            self._ring.watch_lost()

    def _tell(self, change: KeyChange) -> None:
        match change:
            case KeyChanged(stored):
                self._ring.note(stored)
            case KeyRemoved(key_id):
                self._ring.forget(key_id)
            case CaughtUp():
                self._ring.end_load()
            case _:
                assert_never(change)
