"""Where the messages of a pull request arrive, until the connection is lost."""

from __future__ import annotations

import asyncio
from collections import deque

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.tap import forget, tap, untap
from pyoco_runtime.jetstream.translate import translating


class Inbox:
    """One wildcard subscription; each request has its own token under it, which the server's status messages carry.

    Jobs carry their own subject, not the token: so a request that has not ended by itself must be withdrawn together
    with its inbox. It holds as many messages as were asked for, and no more. One reader at a time.
    """

    def __init__(self, link: NatsLink) -> None:
        self._client: Client = link.client()
        self._link = link
        self._prefix = self._client.new_inbox() + "."
        self._subscription: Subscription | None = None
        self._arrived: deque[Msg] = deque()
        self._waiter: asyncio.Future[bool] | None = None
        self._forget_link = link.on_change(self._on_change)
        self.is_lost = False
        """The connection was lost at least for a moment: pull requests are gone, and messages may be."""

    @property
    def is_of_this_client(self) -> bool:
        """Whether the link still has the client that this was opened on."""
        return self._link.is_up and self._link.client() is self._client

    async def open(self) -> None:
        """Subscribe. Raises NatsUnavailable."""
        with translating():
            self._subscription = await tap(self._client, self._prefix + "*", self._hear)

    async def send(self, subject: str, payload: bytes, token: str) -> None:
        """Publish a request whose messages come here, under that token. Raises NatsUnavailable."""
        if self.is_lost:
            raise NatsUnavailable("the connection was lost")
        with translating():
            await self._client.publish(subject, payload, self._prefix + token)

    def is_about(self, status: Msg, token: str) -> bool:
        """Whether a status message answers that request."""
        return status.subject == self._prefix + token

    async def next(self, timeout_sec: float) -> Msg | None:
        """The next message, or None if none comes in time. Raises NatsUnavailable once the connection was lost."""
        arrived = self._arrived
        if not arrived:
            if self.is_lost:
                raise NatsUnavailable("the connection was lost")
            if not await self._something(timeout_sec):
                return None
            if not arrived:
                raise NatsUnavailable("the connection was lost")
        return arrived.popleft()

    def rest(self) -> list[Msg]:
        """All that has arrived and was not read."""
        rest = list(self._arrived)
        self._arrived.clear()
        return rest

    async def unsubscribe(self) -> None:
        """Have the server drop the requests; what it has sent already still arrives. Raises NatsUnavailable."""
        if self._subscription is not None and self.is_of_this_client:
            self.is_lost = True
            with translating():
                await untap(self._client, self._subscription)

    def close(self) -> None:
        """Forget it."""
        self._forget_link()
        if self._subscription is not None:
            forget(self._client, self._subscription)

    async def _something(self, timeout_sec: float) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(timeout_sec, _resolve, waiter, False)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _hear(self, message: Msg) -> None:
        self._arrived.append(message)
        if self._waiter is not None:
            _resolve(self._waiter, True)

    def _on_change(self) -> None:
        self.is_lost = True
        if self._waiter is not None:
            _resolve(self._waiter, True)


def _resolve(waiter: asyncio.Future[bool], value: bool) -> None:
    if not waiter.done():
        waiter.set_result(value)
