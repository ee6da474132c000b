"""Hints that something has changed."""

from __future__ import annotations

import logging

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.tap import forget, tap, untap
from pyoco_runtime.jetstream.translate import translating

_log = logging.getLogger(__name__)


class NatsHintWatch:
    """Implements ports.WheelWatch and ports.HouseWatch with a plain subscription; it is lost with the connection."""

    def __init__(self, link: NatsLink) -> None:
        self._client: Client = link.client()
        self._subscription: Subscription | None = None
        self._news = anyio.Event()
        self._is_lost = False
        self._forget_link = link.on_change(self._on_change)

    async def open(self, subject: str) -> None:
        """Listen. Raises NatsUnavailable."""
        with translating():
            self._subscription = await tap(self._client, subject, self._hear)

    async def changed(self) -> None:
        await self._news.wait()
        if self._is_lost:
            raise NatsUnavailable("the watch was lost with its connection")
        self._news = anyio.Event()

    async def close(self) -> None:
        """Hear nothing more."""
        self._forget_link()
        if self._subscription is None:
            return
        forget(self._client, self._subscription)
        try:
            with translating(), anyio.CancelScope(shield=True):  # nothing here waits for an answer
                await untap(self._client, self._subscription)
        except NatsUnavailable as error:
            _log.debug("a watch ended while the connection was down: %s", error)

    def _hear(self, message: Msg) -> None:
        self._news.set()

    def _on_change(self) -> None:
        self._is_lost = True
        self._news.set()
