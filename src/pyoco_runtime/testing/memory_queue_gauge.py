"""The queue gauge port of one simulated process."""

from __future__ import annotations

from pyoco_runtime.ports import TagDepth
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_stream import MemoryStream


class MemoryQueueGauge:
    """Implements ports.QueueGauge."""

    def __init__(self, connection: MemoryConnection, stream: MemoryStream) -> None:
        self._connection = connection
        self._stream = stream

    async def read(self) -> tuple[TagDepth, ...]:
        return await self._connection.call("gauge.read", self._read)

    def _read(self) -> tuple[TagDepth, ...]:
        return tuple(self._depth(tag) for tag in self._stream.tags())

    def _depth(self, tag: str) -> TagDepth:
        waiting = self._stream.waiting(tag)
        oldest = min((message.stored_at for message in waiting), default=None)
        return TagDepth(tag, len(waiting), self._stream.in_hand(tag), oldest)
