"""A simulated process: its connection, its ports, and the ways in which it loses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoco_runtime.testing.memory_connection import MemoryConnection, MemoryWire
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_dead_letters import MemoryDeadLetters
from pyoco_runtime.testing.memory_keys import MemoryKeys
from pyoco_runtime.testing.memory_promises import MemoryPromises
from pyoco_runtime.testing.memory_queue_gauge import MemoryQueueGauge
from pyoco_runtime.testing.memory_queue_inspector import MemoryQueueInspector
from pyoco_runtime.testing.memory_registry import MemoryRegistry
from pyoco_runtime.testing.memory_run_store import MemoryRunStore
from pyoco_runtime.testing.memory_wheel_history import MemoryWheelHistory
from pyoco_runtime.testing.memory_wheels import MemoryWheels
from pyoco_runtime.testing.memory_work_queue import MemoryWorkQueue

if TYPE_CHECKING:
    from pyoco_runtime.testing.memory_jetstream import MemoryJetStream


class MemoryProcess:
    """The ports of one process on a server in memory."""

    def __init__(self, name: str, server: MemoryJetStream, consumer: ConsumerSettings) -> None:
        self.name = name
        self.link = MemoryWire()
        self.connection = MemoryConnection(name, self.link, server.faults)
        self.run_store = MemoryRunStore(self.connection, server.runs, server.max_snapshot_bytes)
        self.work_queue = MemoryWorkQueue(self.connection, server.work, consumer)
        self.inspector = MemoryQueueInspector(self.connection, server.work)
        self.registry = MemoryRegistry(self.connection, server.workers)
        self.dead_letters = MemoryDeadLetters(self.connection, server.letters)
        self.wheels = MemoryWheels(self.connection, server.shelf)
        self.wheel_history = MemoryWheelHistory(self.connection, server.wheel_history)
        self.gauge = MemoryQueueGauge(self.connection, server.work)
        self.promises = MemoryPromises(self.connection, server.promises)
        self.keys = MemoryKeys(self.connection, server.keys)

    def crash(self) -> None:
        """Be gone at this moment and for good: calls under way fail, pulls vanish, deliveries stay unacked."""
        self.connection.die()
        self.link.cut("the process is gone")

    def disconnect(self) -> None:
        """Lose the connection: calls under way fail and may have happened; pulls and watches are gone."""
        self.link.cut("the connection to NATS is lost; reconnecting")

    def reconnect(self) -> None:
        """Be connected again; a link actor, if there is one, declares it."""
        self.link.mend()
