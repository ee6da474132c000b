"""The core inside a trio program: a ticker that crashes once, a counter that goes on, and the program's own nursery.

Run it: python examples/supervisor_trio.py (needs trio: pip install "pyoco-runtime[testing]")
"""

from __future__ import annotations

from collections.abc import Iterator

import trio  # noqa: TID251 - this example is about trio hosts

from pyoco_runtime.core import (
    ActorSpec,
    Backoff,
    Channel,
    Context,
    Event,
    Receiver,
    Sender,
    Supervisor,
    SupervisorSpec,
)

Tick = int


class Ticker:
    """Send a tick every 20 ms; the first life crashes after three."""

    def __init__(self, ticks: Sender[Tick], life: int) -> None:
        self._ticks = ticks
        self._life = life

    async def run(self, context: Context) -> None:
        context.ready()
        number = 0
        with context.until_stopping():
            while True:
                number += 1
                await self._ticks.send(number)
                if self._life == 1 and number == 3:
                    raise RuntimeError("the spring broke")
                await trio.sleep(0.02)


class Counter:
    """Count the ticks of all lives of the ticker; `enough` is set at eight."""

    def __init__(self, ticks: Receiver[Tick], enough: trio.Event) -> None:
        self._ticks = ticks
        self._enough = enough

    async def run(self, context: Context) -> None:
        context.ready()
        seen = 0
        with context.until_stopping():
            async for tick in self._ticks:
                seen += 1
                print(f"tick {tick}, {seen} in all")
                if seen == 8:
                    self._enough.set()


def show(event: Event) -> None:
    """Print the kind of an event and the actor it is about."""
    print(f"{type(event).__name__:<10} {event.path}")


async def main() -> None:
    ticks = Channel[Tick]("ticks", capacity=4)
    enough = trio.Event()
    lives: Iterator[int] = iter(range(1, 100))
    spec = SupervisorSpec(
        "clock",
        (
            ActorSpec("counter", lambda: Counter(ticks, enough), mailboxes=(ticks,)),
            ActorSpec("ticker", lambda: Ticker(ticks, next(lives)), backoff=Backoff(0.05, 2.0, 1.0, 0.0)),
        ),
    )
    tree = Supervisor(spec)
    tree.feed.listen(show)
    async with tree:
        with trio.fail_after(5):
            await enough.wait()


if __name__ == "__main__":
    trio.run(main)
