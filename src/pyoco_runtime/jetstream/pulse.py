"""Whether the server at the other end of a connection still answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nats.aio.client import Client

EVERY_SEC = 2.0  # between two PINGs of an idle connection; one costs some 50 us
TICK_SEC = 0.05
PATIENCE_TICKS = 12  # 0.6 s; a server under full load answers a PING within some milliseconds

PING = b"PING\r\n"


class Pulse:
    """A PING now and then, and at once when somebody doubts; `tell` hears that the server is silent, or is no more.

    nats-py pings too, but takes 20 s and more to give a server up that is there and does nothing: one that is stopped,
    swapped out, or behind a network that swallows. This one gives nothing up: the connection stays, and the same PING
    is answered when the server goes on.

    Whatever comes from the server is a sign of life: its PONG may stand behind much else. And time alone does not
    condemn it: each tick is a turn of our own event loop, in which an answer that has come is heard.
    """

    def __init__(self, client: Client, tell: Callable[[bool], None]) -> None:
        self._client = client
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._pong: asyncio.Future[bool] | None = None
        self._heard = 0
        self._ticks = 0
        self.is_silent = False
        """It was asked, and has said nothing for too long."""
        self._timer = self._loop.call_later(EVERY_SEC, self._ask)

    def doubt(self) -> None:
        """An answer is late: ask now, unless an answer is being waited for."""
        if self._pong is None and not self._timer.cancelled():
            self._timer.cancel()
            self._ask()

    def stop(self) -> None:
        """Ask no more, and say no more."""
        self._timer.cancel()
        self._pong = None  # never cancelled: nats-py would resolve it all the same

    def _ask(self) -> None:
        if not self._client.is_connected or self._client._transport is None:
            self._timer = self._loop.call_later(EVERY_SEC, self._ask)  # it reconnects, and tells of that itself
            return
        pong: asyncio.Future[bool] = self._loop.create_future()
        pong.add_done_callback(self._answered)
        self._pong = pong
        self._client._pongs.append(pong)
        self._client._transport.write(PING)
        self._heard = self._client.stats["in_msgs"]
        self._ticks = 0
        self._timer = self._loop.call_later(TICK_SEC, self._tick)

    def _answered(self, pong: asyncio.Future[bool]) -> None:
        if pong is not self._pong:
            return
        self._pong = None
        self._timer.cancel()
        self._timer = self._loop.call_later(EVERY_SEC, self._ask)
        self._say(False)

    def _tick(self) -> None:
        heard = self._client.stats["in_msgs"]
        self._ticks = 0 if heard != self._heard else self._ticks + 1
        self._heard = heard
        self._timer = self._loop.call_later(TICK_SEC, self._tick)
        self._say(self._ticks >= PATIENCE_TICKS)

    def _say(self, is_silent: bool) -> None:
        if is_silent is not self.is_silent:
            self.is_silent = is_silent
            self._tell(is_silent)
