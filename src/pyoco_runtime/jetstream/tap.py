"""A subscription whose messages go to a plain function, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription


class Tap(asyncio.Future[Msg]):
    """Pass to `Client.subscribe(future=...)`: `hear` is called with every message, inside the connection's read loop.

    nats-py resolves the future of a subscription as the message is parsed. A callback or an iterator costs a queue and
    a task for each subscription, a fifth of the requests per second, and a moment in which a message is in nobody's
    hands. `hear` must not raise: that would end the read loop.
    """

    def __init__(self, hear: Callable[[Msg], None]) -> None:
        super().__init__()
        self._hear = hear

    def cancelled(self) -> bool:
        return False

    def set_result(self, result: Msg, /) -> None:
        self._hear(result)


async def tap(client: Client, subject: str, hear: Callable[[Msg], None]) -> Subscription:
    """Have `hear` called with every message on that subject. Raises what nats-py raises."""
    return await client.subscribe(subject, future=Tap(hear))


async def untap(client: Client, subscription: Subscription) -> None:
    """Tell the server to send no more; what was sent is still heard until `forget`. Raises what nats-py raises."""
    # not Subscription.drain(): its PING overtakes the UNSUB, and a flush that is cancelled ends nats-py's read loop
    if client.is_connected:
        await client._send_unsubscribe(subscription._id)


def forget(client: Client, subscription: Subscription) -> None:
    """Hear nothing more of it, and do not subscribe again after a reconnect."""
    client._remove_sub(subscription._id)
