"""A NATS server in memory, for several simulated processes in virtual time."""

from __future__ import annotations

import anyio

from pyoco_runtime.model.wire import worker_to
from pyoco_runtime.model.worker import WorkerRecord
from pyoco_runtime.ports import Clock, StoredRun
from pyoco_runtime.testing.faults import Faults
from pyoco_runtime.testing.memory_bucket import MemoryBucket
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_dead_letters import MemoryLetters
from pyoco_runtime.testing.memory_log import SOMEBODY, MemoryLog
from pyoco_runtime.testing.memory_process import MemoryProcess
from pyoco_runtime.testing.memory_promises import MemoryDrawer
from pyoco_runtime.testing.memory_registry import stored_worker
from pyoco_runtime.testing.memory_run_store import MemoryRuns
from pyoco_runtime.testing.memory_stream import MemoryStream
from pyoco_runtime.testing.memory_wheels import MemoryShelf

EPOCH = 1_800_000_000.0  # unix seconds; any day will do, as long as no timestamp is near 0


def virtual_clock() -> float:
    """Timestamps that pass with anyio's clock."""
    return EPOCH + anyio.current_time()


class MemoryJetStream:
    """The server and all that it stores. `process` makes the ports; the rest is what others do, without faults."""

    def __init__(
        self,
        *,
        clock: Clock = virtual_clock,
        faults: Faults | None = None,
        consumer: ConsumerSettings | None = None,
        max_snapshot_bytes: int = 262144,
        subject_prefix: str = "pyoco.work",
    ) -> None:
        self.clock = clock
        self.log = MemoryLog()
        self.faults = faults or Faults()
        self.consumer = consumer or ConsumerSettings()
        self.max_snapshot_bytes = max_snapshot_bytes
        self.runs = MemoryRuns(clock, self.log)
        self.workers = MemoryBucket()
        self.work = MemoryStream(subject_prefix, clock, self.log)
        self.shelf = MemoryShelf(clock)
        self.wheel_history = MemoryBucket()
        self.keys = MemoryBucket()
        self.letters = MemoryLetters(clock, self.log)
        self.promises = MemoryDrawer(clock)
        self.processes: list[MemoryProcess] = []
        self.faults.attach(self.work.redeliver_now)

    def process(self, name: str, *, connected: bool = True, consumer: ConsumerSettings | None = None) -> MemoryProcess:
        """A new process with this name, connected unless a link actor is to do that.

        `consumer` is how it makes consumers that are missing, if not as the server's others do.
        """
        made = MemoryProcess(name, self, consumer or self.consumer)
        if connected:
            made.link.declare_up()
        self.processes.append(made)
        return made

    def restart(self) -> None:
        """Restart the server: every process is disconnected, to be reconnected by the test; what is stored stays."""
        for process in self.processes:
            process.disconnect()
        self.work.forget_copies()

    def snapshot(self, run_id: str) -> StoredRun | None:
        """What is stored about a run. Raises Unreadable."""
        return self.runs.read(run_id)

    def write_run(self, run_id: str, data: bytes) -> int:
        """Write to a run as somebody else, whatever is there; returns the revision."""
        return self.runs.write(run_id, data, None)

    def send(self, tag: str, data: bytes) -> int:
        """Put any bytes on the work queue; returns the sequence."""
        return self.work.publish(tag, data, None, SOMEBODY)

    def write_letter(self, data: bytes) -> int:
        """Put any bytes among the dead letters, as another version does; returns the sequence."""
        return self.letters.add(data, SOMEBODY)

    def worker(self, worker_id: str) -> WorkerRecord | None:
        """What is stored about a worker."""
        return stored_worker(self.workers, worker_id)

    def write_worker(self, record: WorkerRecord) -> None:
        """Write a worker record as somebody else: the gateway hides one, another version adds a field."""
        self.workers.write(record.worker_id, worker_to(record), None)
