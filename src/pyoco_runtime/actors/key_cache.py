"""The actor that tells the key ring how the API keys change."""

from __future__ import annotations

from typing import assert_never

from pyoco_runtime.actors.following import Audience, follow
from pyoco_runtime.core import Context
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.ports import CaughtUp, KeyChange, KeyChanged, KeyRemoved, KeyStore, Link


class KeyCache:
    """A key that is revoked is refused as soon as this actor hears of it. Without it the ring reads more often."""

    def __init__(self, ring: KeyRing, store: KeyStore, link: Link) -> None:
        self._ring = ring
        self._store = store
        self._link = link

    async def run(self, context: Context) -> None:
        """Follow all keys until asked to stop; a feed that is lost is opened anew."""
        audience = Audience(self._ring.begin_load, lambda why: self._ring.watch_lost())
        await follow(context, self._link, "API keys", self._store.changes, self._tell, audience)

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
