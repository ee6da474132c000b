"""How many streams each caller has open."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pyoco_runtime.errors import Busy
from pyoco_runtime.model.api_key import Principal

MOST = 2000  # open streams of one key, or of all together without keys; some 20 kB each


class Streams:
    """Counts, and refuses one too many. Belongs to the tree."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: dict[str | None, int] = {}

    def counted(self, caller: Principal | None, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same events; they count from the first one on until they end. Raises Busy."""
        key_id = None if caller is None else caller.key_id
        if self._open.get(key_id, 0) >= self._most:
            raise Busy(f"{self._most} streams are open with this key; close some, or watch the list instead")
        return self._counting(key_id, events)

    async def _counting(self, key_id: str | None, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._open[key_id] = self._open.get(key_id, 0) + 1
        try:
            async for each in events:
                yield each
        finally:
            self._open[key_id] -= 1
            if not self._open[key_id]:
                del self._open[key_id]
