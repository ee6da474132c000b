"""The link actor: owns connecting, reconnecting and setting up what is missing."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import LinkClosed, NatsUnavailable
from pyoco_runtime.ports import LinkOwner, LinkStatus

_log = logging.getLogger(__name__)

CLOSE_SEC = 3.0  # a close is local work; past this the socket is abandoned


class Link:
    """Keep the one connection up. It is ready at once: the tree starts while NATS is away.

    away --connected, prepared--> up --lost--> away (reconnects by itself) ; closed for good --> crash, a new life
    """

    def __init__(self, owner: LinkOwner, *, retry_sec: float = 1.0) -> None:
        self._owner = owner
        self._retry_sec = retry_sec

    async def run(self, context: Context) -> None:
        """Work until asked to stop; raises LinkClosed when the connection ended for good."""
        context.ready()
        try:
            with context.until_stopping():
                await self._persist("connect to NATS", self._owner.connect)
                await self._keep_up()
        finally:
            self._owner.declare_down("the link is down")
            with anyio.move_on_after(CLOSE_SEC, shield=True):
                await self._owner.close()

    async def _keep_up(self) -> None:
        await self._bring_up("connected to NATS")
        while True:
            match await self._owner.next_status():
                case LinkStatus.CONNECTED:
                    await self._bring_up("connection to NATS restored")
                case LinkStatus.LOST:
                    self._owner.declare_down("the connection to NATS is lost; reconnecting")
                    _log.warning("connection to NATS lost; reconnecting", extra=_NATS_AWAY)
                case LinkStatus.CLOSED:
                    raise LinkClosed("the connection to NATS was closed for good")

    async def _bring_up(self, news: str) -> None:
        await self._persist("set up streams and buckets", self._owner.prepare)
        self._owner.declare_up()
        _log.info(news)

    async def _persist(self, what: str, attempt: Callable[[], Awaitable[None]]) -> None:
        """Try until it works; says why it does not when the reason is new."""
        said = ""
        while True:
            try:
                await attempt()
                return
            except LinkClosed:
                raise
            except NatsUnavailable as error:
                self._owner.declare_down(str(error))
                if str(error) != said:
                    said = str(error)
                    _log.warning("cannot %s yet: %s; trying again", what, said, extra=_NATS_AWAY)
            await anyio.sleep(self._retry_sec * random.uniform(0.5, 1.0))


_NATS_AWAY = {"err_id": "ERR-PYOCO-0003", "msg_id": "MSG-PYOCO-0003"}
