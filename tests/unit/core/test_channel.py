"""Channels: bounded, typed, owned by the tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from pyoco_runtime.core import ActorSpec, Backoff, Channel, Context, Receiver, Supervisor, SupervisorSpec
from pyoco_runtime.errors import ChannelClosed


async def test_a_full_channel_slows_the_sender_down() -> None:
    """The third send waits until there is room."""
    box = Channel[int]("box", capacity=2)
    sent: list[int] = []

    async def producer() -> None:
        for n in range(4):
            await box.send(n)
            sent.append(n)

    async with anyio.create_task_group() as group:
        group.start_soon(producer)
        await anyio.sleep(1)
        assert sent == [0, 1]
        assert box.depth == 2
        assert [await box.receive() for _ in range(4)] == [0, 1, 2, 3]
    box.close()


async def test_try_send_says_whether_there_was_room() -> None:
    """It never waits."""
    box = Channel[int]("box", capacity=1)
    assert box.try_send(1) is True
    assert box.try_send(2) is False
    assert await box.receive() == 1
    box.close()


async def test_a_cancelled_receive_loses_nothing() -> None:
    """What arrives later goes to the next receiver."""
    box = Channel[int]("box", capacity=1)
    with anyio.move_on_after(1):
        await box.receive()
    await box.send(7)
    assert await box.receive() == 7
    box.close()


async def test_a_closed_channel_says_so_on_both_ends() -> None:
    """A reader that waits is woken, iteration just ends."""
    box = Channel[int]("box", capacity=1)

    async def closer() -> None:
        await anyio.sleep(1)
        box.close()

    async with anyio.create_task_group() as group:
        group.start_soon(closer)
        with pytest.raises(ChannelClosed, match="box"):
            await box.receive()
    with pytest.raises(ChannelClosed):
        await box.send(1)
    with pytest.raises(ChannelClosed):
        box.try_send(1)
    assert [n async for n in box] == []


class Reader:
    """Reads until a message makes it crash."""

    def __init__(self, box: Receiver[int], seen: list[int]) -> None:
        self._box = box
        self._seen = seen

    async def run(self, context: Context) -> None:
        context.ready()
        with context.until_stopping():
            async for message in self._box:
                self._seen.append(message)
                if message == 3:
                    raise ValueError("three")


async def test_messages_wait_while_their_actor_is_down() -> None:
    """A crash loses the one message that was being handled, and none of those that wait."""
    box = Channel[int]("box", capacity=10)
    seen: list[int] = []
    spec = ActorSpec("reader", lambda: Reader(box, seen), mailboxes=(box,), backoff=Backoff(5, 1, 5, 0))
    async with Supervisor(SupervisorSpec("root", (spec,))):
        for n in range(8):
            await box.send(n)
        await anyio.sleep(1)
        assert seen == [0, 1, 2, 3]
        assert box.depth == 4
        await anyio.sleep(10)
        assert seen == list(range(8))
    with pytest.raises(ChannelClosed):
        box.try_send(1)


def test_a_channel_without_capacity_is_refused() -> None:
    """A bound is part of its type."""
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        Channel[int]("box", capacity=0)


def test_mypy_rejects_a_wrong_message_type(tmp_path: Path) -> None:
    """Each line marked as wrong is an error for mypy, and no other line is."""
    sample = Path(__file__).parents[2] / "typing" / "wrong_message.py"
    marked = [n for n, line in enumerate(sample.read_text().splitlines(), 1) if "# wrong" in line]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path)]
    result = subprocess.run([*command, str(sample)], capture_output=True, text=True, check=False)
    lines = [int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line]
    assert lines == marked, result.stdout
