"""Two actors and a channel, on asyncio. The reader crashes once; its supervisor starts it again and no order is lost.

Run it: python examples/supervisor_asyncio.py
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
from attrs import frozen

from pyoco_runtime.core import (
    ActorSpec,
    Backoff,
    Channel,
    Context,
    Event,
    Exited,
    Receiver,
    Restart,
    Restarting,
    Sender,
    Supervisor,
    SupervisorSpec,
)


@frozen
class Order:
    """What the writer sends to the reader."""

    number: int


class Writer:
    """Send five orders, then end."""

    def __init__(self, orders: Sender[Order]) -> None:
        self._orders = orders

    async def run(self, context: Context) -> None:
        context.ready()
        for number in range(1, 6):
            await self._orders.send(Order(number))


class Reader:
    """Print every order; the first life crashes after the second one."""

    def __init__(self, orders: Receiver[Order], finished: anyio.Event, *, crashes: bool) -> None:
        self._orders = orders
        self._finished = finished
        self._crashes = crashes

    async def run(self, context: Context) -> None:
        context.ready()
        with context.until_stopping():
            while True:
                order = await self._orders.receive()
                print(f"order {order.number}")
                if order.number == 2 and self._crashes:
                    raise RuntimeError("the reader fell over")
                if order.number == 5:
                    self._finished.set()


def readers(orders: Receiver[Order], finished: anyio.Event) -> Callable[[], Reader]:
    """A factory of readers: the first one crashes, all later ones do not."""
    lives = iter([True])
    return lambda: Reader(orders, finished, crashes=next(lives, False))


def show(event: Event) -> None:
    """Print an event of the tree in a few words."""
    detail = ""
    if isinstance(event, Exited) and event.crash is not None:
        detail = f" ({event.crash.type}: {event.crash.message})"
    elif isinstance(event, Restarting):
        detail = f" (in {event.delay_sec:g} s)"
    print(f"{type(event).__name__:<10} {event.path}{detail}")


async def main() -> None:
    orders = Channel[Order]("orders", capacity=8)
    finished = anyio.Event()
    spec = SupervisorSpec(
        "shop",
        (
            ActorSpec("reader", readers(orders, finished), backoff=Backoff(0.05, 2.0, 1.0, 0.0), mailboxes=(orders,)),
            ActorSpec("writer", lambda: Writer(orders), restart=Restart.TRANSIENT),
        ),
    )
    tree = Supervisor(spec)
    tree.feed.listen(show)
    async with tree:
        with anyio.fail_after(5):
            await finished.wait()


if __name__ == "__main__":
    anyio.run(main)
