"""The publisher of dead letters in virtual time."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.actors.dlq_publisher import DlqPublisher
from pyoco_runtime.letterbox import Letterbox, Posted
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import alone, in_virtual_time


def letter(n: int) -> DeadLetter:
    return DeadLetter(timestamp=float(n), reason=Reason.EXECUTION_ERROR, error=None, run_id=f"r-{n}")


def stored(server: MemoryJetStream) -> list[str | None]:
    """The runs of the letters that were stored, each once."""
    return list(dict.fromkeys(each.run_id for each in server.log.letters()))


class Post:
    """A box, a server, and how the publisher is made."""

    def __init__(self, capacity: int = 1000) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("w-1")
        self.box = Letterbox(capacity)

    def publisher(self) -> DlqPublisher:
        return DlqPublisher(self.box, self.process.dead_letters, self.process.link)


@in_virtual_time
async def test_letters_are_stored_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """A failure is logged as ERR-PYOCO-0011 and tried again before the next letter."""
    post = Post()
    post.server.faults.next("dead_letters.publish", None, Lost.BEFORE, Lost.BEFORE)
    async with alone(post.publisher):
        for n in range(5):
            await post.box.post(letter(n))
        await anyio.sleep(10)
        assert [each.run_id for each in post.server.log.letters()] == [f"r-{n}" for n in range(5)]
    assert [getattr(record, "err_id", None) for record in caplog.records] == ["ERR-PYOCO-0011"] * 2


@in_virtual_time
async def test_while_nats_is_away_letters_wait_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """It waits for the link instead of trying; then all are stored."""
    post = Post()
    post.process.disconnect()
    async with alone(post.publisher):
        for n in range(5):
            await post.box.post(letter(n))
        await anyio.sleep(1000)
        assert stored(post.server) == []
        post.process.reconnect()
        await anyio.sleep(1)
        assert stored(post.server) == [f"r-{n}" for n in range(5)]
    assert caplog.records == []


@in_virtual_time
async def test_nothing_is_lost_over_a_restart() -> None:
    """Restarted in the middle of a call: the letter is in the box until its store was confirmed."""
    post = Post()
    post.server.faults.next("dead_letters.publish", Slow(3.0), Slow(3.0))
    async with alone(post.publisher) as tree:
        for n in range(3):
            await post.box.post(letter(n))
        await anyio.sleep(1)
        await tree.restart("root/it")
        await anyio.sleep(10)
    assert stored(post.server) == ["r-0", "r-1", "r-2"]
    assert len(post.box) == 0


@in_virtual_time
async def test_a_full_box_makes_senders_wait_until_it_is_emptied() -> None:
    """Law 7: nobody is refused, and nothing grows without bound."""
    post = Post(capacity=3)
    post.process.disconnect()

    async def send(n: int) -> None:
        await post.box.post(letter(n))

    async with alone(post.publisher), anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(send, n)
        await anyio.sleep(100)
        assert len(post.box) == 3
        post.process.reconnect()
    assert len(stored(post.server)) == 20


@in_virtual_time
async def test_asked_to_stop_it_empties_the_box() -> None:
    """Also with hiccups on the way."""
    post = Post()
    post.server.faults.next("dead_letters.publish", Lost.BEFORE, None, Lost.BEFORE)
    async with alone(post.publisher):
        for n in range(5):
            await post.box.post(letter(n))
    assert stored(post.server) == [f"r-{n}" for n in range(5)]


@in_virtual_time
async def test_without_nats_it_does_not_hold_up_the_end() -> None:
    """Cancelled after its shutdown time, with the letters in the box."""
    post = Post()
    post.process.disconnect()
    async with alone(post.publisher):
        await post.box.post(letter(1))
        began = anyio.current_time()
    assert anyio.current_time() - began == pytest.approx(5.0)
    assert len(post.box) == 1


def test_the_publisher_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    posts: list[Post] = []

    def make() -> DlqPublisher:
        if not posts or not len(posts[-1].box):
            posts.append(Post())
            for n in range(5):
                posts[-1].box._letters.append(Posted(letter(n)))
        posts[-1].server.faults.next("dead_letters.publish", Slow(0.5), Lost.AFTER)
        return posts[-1].publisher()

    stress_start_cancel(make)
    for post in posts:
        runs = [each.run_id for each in post.server.log.letters()]
        assert list(dict.fromkeys(runs)) == [f"r-{n}" for n in range(len(set(runs)))], "in order, none left out"
