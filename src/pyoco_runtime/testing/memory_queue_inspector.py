"""The queue inspector port of one simulated process."""

from __future__ import annotations

from pyoco_runtime.model.wire import job_from
from pyoco_runtime.ports import StuckJob
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_stream import MemoryStream

EARLY_SEC, LATE_SEC = 5.0, 120.0  # what "around that time" means; the real one does not look further either


class MemoryQueueInspector:
    """Implements ports.QueueInspector."""

    def __init__(self, connection: MemoryConnection, stream: MemoryStream) -> None:
        self._connection = connection
        self._stream = stream

    async def holds(self, seq: int) -> bool:
        return await self._connection.call("queue.inspect", lambda: seq in self._stream.messages)

    async def find(self, run_id: str, tag: str, submitted_at: float) -> int | None:
        return await self._connection.call("queue.inspect", lambda: self._find(run_id, tag, submitted_at))

    async def stuck(self) -> list[StuckJob]:
        found = await self._connection.call("queue.inspect", self._stream.stuck)
        return [StuckJob(each.seq, each.tag, each.subject, job_from(each.data)) for each in found]

    async def discard(self, seq: int) -> None:
        await self._connection.call("queue.inspect", lambda: self._stream.discard(seq, self._connection.name))

    def _find(self, run_id: str, tag: str, submitted_at: float) -> int | None:
        for message in self._stream.messages.values():
            is_near = -EARLY_SEC <= message.stored_at - submitted_at <= LATE_SEC
            if is_near and message.tag == tag and job_from(message.data).run_id == run_id:
                return message.seq
        return None
