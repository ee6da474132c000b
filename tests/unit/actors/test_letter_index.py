"""The actor that keeps the board of dead letters up to date, in virtual time."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.actors.following import RETRY_SEC
from pyoco_runtime.actors.letter_index import LetterIndexer
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.letter_index import LetterFilter
from pyoco_runtime.model.wire import letter_to
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import alone, in_virtual_time, settle_down


class House:
    """A server, a gateway's process on it, and the board of that gateway."""

    def __init__(self, *, connected: bool = True, max_age_sec: float | None = None) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway", connected=connected)
        self.board = LetterBoard(max_age_sec=max_age_sec)

    def indexer(self) -> LetterIndexer:
        return LetterIndexer(self.board, self.process.dead_letters, self.process.link, virtual_clock)

    def write(self) -> int:
        return self.server.write_letter(
            letter_to(DeadLetter(timestamp=virtual_clock(), reason=Reason.LOST_JOB, error="boom"))
        )

    def is_current(self) -> bool:
        return self.board.behind is None

    def seqs(self) -> list[int]:
        return [entry.seq for entry in self.board.index.query(LetterFilter(), 1000)]

    def agrees(self) -> bool:
        """Whether the board has what is stored, and nothing else."""
        return sorted(self.seqs()) == [stored.seq for stored in self.server.letters.letters()]


@in_virtual_time
async def test_first_what_is_stored_then_what_comes() -> None:
    """What cannot be read is no letter; the board says when it is up to date."""
    house = House()
    for _ in range(200):
        house.write()
    house.server.write_letter(b"garbage")
    assert not house.is_current()
    async with alone(house.indexer):
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()
        house.write()
        house.server.write_letter(b"garbage")
        house.write()
        await settle_down()
        assert house.seqs()[:2] == [204, 202]
        assert house.agrees()
    assert not house.is_current(), "nobody listens any more"
    assert len(house.board.index) == 202


@in_virtual_time
async def test_it_is_ready_before_there_is_a_connection() -> None:
    """The start of the house does not wait for NATS."""
    house = House(connected=False)
    async with alone(house.indexer):  # would not be entered otherwise
        await anyio.sleep(10)
        assert not house.is_current()
        house.write()
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.agrees()


@in_virtual_time
async def test_after_a_loss_of_the_connection_it_reconciles() -> None:
    """What has come and what is gone meanwhile; the board says since when it is old."""
    house = House()
    for _ in range(5):
        house.write()
    async with alone(house.indexer) as tree:
        await anyio.sleep(1)
        lost_at = virtual_clock()
        house.process.disconnect()
        house.server.letters.drop(2)
        house.write()
        await anyio.sleep(60)
        behind = house.board.behind
        assert behind is not None
        assert behind.since == pytest.approx(lost_at)
        assert house.seqs() == [5, 4, 3, 2, 1], "what was known is kept meanwhile"
        house.process.reconnect()
        await anyio.sleep(1)
        assert house.is_current()
        assert house.seqs() == [6, 5, 4, 3, 1]
        house.server.letters.drop(6)
        await tree.restart("root/it")
        await anyio.sleep(1)
        assert house.agrees()


@in_virtual_time
async def test_what_is_too_old_is_forgotten_with_the_next_letter() -> None:
    """The stream says nothing when it throws one away."""
    house = House(max_age_sec=100.0)
    house.write()
    async with alone(house.indexer):
        await anyio.sleep(90)
        house.write()
        await anyio.sleep(20)
        house.write()
        await settle_down()
        assert house.seqs() == [3, 2]


@pytest.mark.parametrize("how", ["open", "next", "slow"])
@in_virtual_time
async def test_a_feed_that_fails_is_opened_again(how: str) -> None:
    """Though the link says that it is up."""
    house = House()
    house.write()
    match how:
        case "open":
            house.server.faults.next("dead_letters.watch", Lost.BEFORE, Lost.AFTER)
        case "next":
            house.server.faults.next("dead_letters.watch_next", None, Lost.AFTER, None, None, None, Lost.AFTER)
        case _:
            house.server.faults.next("dead_letters.watch_next", Slow(3.0))
    async with alone(house.indexer):
        await anyio.sleep(0.1)
        house.write()
        await anyio.sleep(3 + 3 * RETRY_SEC)
        house.write()
        await anyio.sleep(3 * RETRY_SEC)
        assert house.is_current()
        assert house.agrees()


def test_it_can_be_started_and_cancelled_at_any_moment() -> None:
    """It leaves nothing behind."""
    stress_start_cancel(lambda: House().indexer(), seeds=range(50))
