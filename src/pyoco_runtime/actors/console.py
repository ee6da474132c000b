"""The console actor: shows the tree of this process to the network and restarts one actor on request."""

from __future__ import annotations

import logging

import anyio

from pyoco_runtime.core import Context, Feed
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.ports import ConsoleHost, ConsoleService, Desk, Link

_log = logging.getLogger(__name__)

RETRY_SEC = 0.2  # only when the link says up and the request fails all the same
QUIET_SEC = 0.05  # a burst of events is one notice


class Console:
    """Serve the desk whenever the link is up, and tell watchers when the tree changes."""

    def __init__(self, desk: Desk, host: ConsoleHost, link: Link, feed: Feed) -> None:
        self._desk = desk
        self._host = host
        self._link = link
        self._feed = feed
        self._wake = anyio.Event()

    async def run(self, context: Context) -> None:
        """Work until asked to stop."""
        context.ready()
        unlisten = self._feed.listen(lambda event: self._wake.set())
        unwatch = self._link.on_change(lambda: self._wake.set())
        try:
            with context.until_stopping():
                while True:
                    await self._link.wait_up()
                    await self._serve()
        finally:
            unlisten()
            unwatch()

    async def _serve(self) -> None:
        try:
            async with self._host.serving(self._desk) as service:
                await self._tell(service)
        except NatsUnavailable:
            await anyio.sleep(RETRY_SEC)

    async def _tell(self, service: ConsoleService) -> None:
        self._wake.set()  # who comes late, or again after a crash of its own, has missed what was told meanwhile
        while self._link.epoch == service.epoch:
            await self._wake.wait()
            await anyio.sleep(QUIET_SEC)
            self._wake = anyio.Event()
            if self._link.is_up:
                await self._notify(service)

    async def _notify(self, service: ConsoleService) -> None:
        try:
            await service.notify()
        except NatsUnavailable:
            _log.debug("a notice was not sent: the connection is lost; the service comes back with it")
