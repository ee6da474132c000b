"""A server, a gateway's process on it, and one of the boards of that gateway, for the actors that keep boards."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyoco_runtime.actors.letter_index import LetterIndexer
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.actors.worker_index import WorkerIndexer
from pyoco_runtime.core import Actor
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.letter_index import LetterFilter
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.wire import letter_to, snapshot_to
from pyoco_runtime.model.worker import WorkerRecord, WorkerState
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.testing.faults import Operation
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.worker_board import WorkerBoard

MANY = 100_000


class House(ABC):
    """What the boards have in common. Things have numbers; dead letters get theirs when they are written."""

    board: RunBoard | WorkerBoard | LetterBoard
    watch: Operation
    watch_next: Operation
    tells_removals = True
    """Whether the feed says that something is gone; else only a new feed leaves it out."""

    def __init__(self, *, connected: bool = True) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway", connected=connected)

    @abstractmethod
    def indexer(self) -> Actor:
        """A new life of the actor."""

    @abstractmethod
    def write(self, number: int) -> None:
        """Write the thing of this number, in another state than before."""

    @abstractmethod
    def remove(self, number: int) -> None:
        """Delete it."""

    @abstractmethod
    def vanish(self, number: int) -> None:
        """It is gone, and the server tells nobody."""

    @abstractmethod
    def litter(self) -> None:
        """Another program writes what cannot be read."""

    @abstractmethod
    def agrees(self) -> bool:
        """Whether the board has what is stored, and nothing else."""

    def is_current(self) -> bool:
        """What the board says of itself."""
        return self.board.behind is None


class RunHouse(House):
    """With the board of runs."""

    watch: Operation = "run_store.watch"
    watch_next: Operation = "run_store.watch_next"

    def __init__(self, *, connected: bool = True) -> None:
        super().__init__(connected=connected)
        self.board: RunBoard = RunBoard()

    def indexer(self) -> RunIndexer:
        return RunIndexer(self.board, self.process.run_store, self.process.link, virtual_clock)

    def write(self, number: int) -> None:
        self.write_run(f"r-{number}")

    def write_run(self, run_id: str, status: RunStatus = RunStatus.RUNNING) -> int:
        """Returns the revision."""
        snapshot = RunSnapshot(run_id=run_id, flow_name="f", status=status, updated_at=virtual_clock())
        return self.server.write_run(run_id, snapshot_to(snapshot, 262144)[0])

    def remove(self, number: int) -> None:
        self.server.runs.bucket.write(f"r-{number}", None, None)

    def vanish(self, number: int) -> None:
        self.server.runs.bucket._entries.pop(f"r-{number}", None)

    def litter(self) -> None:
        self.server.write_run("bad", b"not json")

    def agrees(self) -> bool:
        entries = self.server.runs.bucket.entries()
        stored = {entry.key: entry.revision for entry in entries if entry.value is not None and entry.key != "bad"}
        return {each.run_id: each.revision for each in self.board.index.query(RunFilter(), MANY).runs} == stored


class WorkerHouse(House):
    """With the board of workers."""

    watch: Operation = "registry.watch"
    watch_next: Operation = "registry.watch_next"

    def __init__(self, *, connected: bool = True) -> None:
        super().__init__(connected=connected)
        self.board: WorkerBoard = WorkerBoard()
        self._writes = 0

    def indexer(self) -> WorkerIndexer:
        return WorkerIndexer(self.board, self.process.registry, self.process.link, virtual_clock)

    def write(self, number: int) -> None:
        self._writes += 1
        self.server.write_worker(
            WorkerRecord(
                worker_id=f"w-{number}",
                instance_id="i",
                state=WorkerState.IDLE,
                last_seen_at=virtual_clock(),
                last_run_id=f"r-{self._writes}",
            )
        )

    def remove(self, number: int) -> None:
        self.server.workers.write(f"w-{number}", None, None)

    def vanish(self, number: int) -> None:
        self.server.workers._entries.pop(f"w-{number}", None)

    def litter(self) -> None:
        self.server.workers.write("bad", b"not json", None)

    def agrees(self) -> bool:
        entries = self.server.workers.entries()
        keys = [each.key for each in entries if each.value is not None and each.key != "bad"]
        found = self.board.index.query(
            now=virtual_clock(), disconnect_timeout_sec=1.0, scope="all", include_hidden=True, limit=MANY
        )
        return {each.worker_id: each for each in found} == {key: self.server.worker(key) for key in keys}


class LetterHouse(House):
    """With the board of dead letters."""

    watch: Operation = "dead_letters.watch"
    watch_next: Operation = "dead_letters.watch_next"
    tells_removals = False

    def __init__(self, *, connected: bool = True, max_age_sec: float | None = None) -> None:
        super().__init__(connected=connected)
        self.board: LetterBoard = LetterBoard(max_age_sec=max_age_sec)

    def indexer(self) -> LetterIndexer:
        return LetterIndexer(self.board, self.process.dead_letters, self.process.link, virtual_clock)

    def write(self, number: int = 0) -> None:
        letter = DeadLetter(timestamp=virtual_clock(), reason=Reason.LOST_JOB, error="boom")
        self.server.write_letter(letter_to(letter))

    def remove(self, number: int) -> None:
        self.server.letters.drop(number)

    def vanish(self, number: int) -> None:
        self.server.letters.drop(number)

    def litter(self) -> None:
        self.server.write_letter(b"not json")

    def seqs(self) -> list[int]:
        """Those on the board, the newest first."""
        return [entry.seq for entry in self.board.index.query(LetterFilter(), MANY)]

    def agrees(self) -> bool:
        return sorted(self.seqs()) == [stored.seq for stored in self.server.letters.letters()]
