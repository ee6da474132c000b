"""The dead letters port of one simulated process."""

from __future__ import annotations

from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.wire import letter_from, letter_to
from pyoco_runtime.ports import Clock
from pyoco_runtime.testing.memory_connection import MemoryConnection
from pyoco_runtime.testing.memory_log import LetterStored, MemoryLog


class MemoryDeadLetters:
    """Implements ports.DeadLetters; what was stored is in the log."""

    def __init__(self, connection: MemoryConnection, clock: Clock, log: MemoryLog) -> None:
        self._connection = connection
        self._clock = clock
        self._log = log

    async def publish(self, letter: DeadLetter) -> None:
        stored = letter_from(letter_to(letter))
        await self._connection.call(
            "dead_letters.publish",
            lambda: self._log.add(LetterStored(at=self._clock(), by=self._connection.name, letter=stored)),
        )
