"""The wheel history port of one simulated process."""

from __future__ import annotations

from pyoco_runtime.model.wheel_event import HistoryQuery, WheelEvent, wheel_event_from, wheel_event_to
from pyoco_runtime.testing.memory_bucket import MemoryBucket
from pyoco_runtime.testing.memory_connection import MemoryConnection


class MemoryWheelHistory:
    """Implements ports.WheelHistory."""

    def __init__(self, connection: MemoryConnection, bucket: MemoryBucket) -> None:
        self._connection = connection
        self._bucket = bucket

    async def append(self, event: WheelEvent) -> None:
        data = wheel_event_to(event)
        await self._connection.call("wheel_history.append", lambda: self._bucket.write(event.key, data, None))

    async def recent(self, query: HistoryQuery) -> list[WheelEvent]:
        return await self._connection.call("wheel_history.recent", lambda: self._recent(query))

    def _recent(self, query: HistoryQuery) -> list[WheelEvent]:
        found = [wheel_event_from(entry.value) for entry in self._bucket.entries() if entry.value is not None]
        wanted = [event for event in found if event is not None and query.wants(event)]
        return sorted(wanted, key=lambda event: event.order, reverse=True)[: query.limit]
