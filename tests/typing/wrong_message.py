"""Checked by mypy in tests/unit/core/test_channel.py, never run: every line marked wrong must be an error."""

from pyoco_runtime.core import Channel, Receiver, Sender


class Tick:
    """A message."""


class Slow(Tick):
    """A message that is a Tick, too."""


box = Channel[Tick]("ticks", capacity=1)
right: Sender[Tick] = box
narrower: Sender[Slow] = box
reader: Receiver[object] = box


async def use() -> None:
    await box.send(Slow())
    await box.send("tick")  # wrong
    box.try_send(3)  # wrong
    await narrower.send(Tick())  # wrong
    text: str = await box.receive()  # wrong
    right.close()  # wrong
    reader.send(Tick())  # wrong
    print(text)


wider: Sender[object] = box  # wrong
other: Receiver[Slow] = box  # wrong
