"""The one NATS connection: the handle that everybody holds, and the means by which the link actor drives it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import anyio
from nats.aio.client import Client, Server
from nats.js import JetStreamContext

from pyoco_runtime.errors import LinkClosed, NatsUnavailable, NotSent
from pyoco_runtime.jetstream.pulse import Pulse
from pyoco_runtime.jetstream.resources import Names, make_missing
from pyoco_runtime.jetstream.translate import describe, translating
from pyoco_runtime.ports import LinkStatus

_log = logging.getLogger(__name__)

CONNECT_SEC = 3.0  # one attempt, name look-up and TLS included
PREPARE_SEC = 15.0  # a cluster without a leader answers within this
REQUEST_SEC = 5.0
DOUBT_SEC = 0.2  # an answer that takes longer makes us ask whether the server is there
SILENT = "the nats-server does not answer"


class NatsLink:
    """Implements ports.Link and ports.LinkOwner over one nats-py client at a time.

    It is also down, for everybody who asks, while the server is connected and silent; but that is no loss of the
    connection: nobody is told of a change, and subscriptions stay. Only the questions under way hear `on_silence`.
    """

    def __init__(self, urls: Callable[[], tuple[str, ...]], name: str, names: Names) -> None:
        self._urls = urls
        self._name = name
        self._names = names
        self._client: Client | None = None
        self._is_declared_up = False
        self._problem = "not connected yet"
        self._pulse: Pulse | None = None
        self._epoch = 0
        self._last_error = ""
        self._status: LinkStatus | None = None
        self._status_changed = anyio.Event()
        self._up = anyio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._silence_listeners: list[Callable[[], None]] = []

    # -- for everybody -------------------------------------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        return self._is_declared_up and not self._is_silent

    @property
    def problem(self) -> str:
        if self._is_declared_up:
            return SILENT if self._is_silent else ""
        return self._problem

    @property
    def epoch(self) -> int:
        return self._epoch

    async def wait_up(self) -> None:
        await self._up.wait()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def client(self) -> Client:
        """The live client, for the adapters in this room. Raises NatsUnavailable at once while the link is down."""
        if self._client is None or not self.is_up:
            raise NotSent(self.problem)
        return self._client

    def doubt(self) -> None:
        """For the adapters: an answer is late; find out whether the server is there."""
        if self._pulse is not None:
            self._pulse.doubt()

    def on_silence(self, listener: Callable[[], None]) -> None:
        """For the adapters: have `listener` called when the server falls silent; nothing that was asked is answered."""
        self._silence_listeners.append(listener)

    # -- for the link actor --------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        if not self._urls():
            raise NatsUnavailable("the embedded nats-server is not up yet")
        client = Client()
        self._last_error = ""
        is_made = False
        try:
            with translating(), anyio.fail_after(CONNECT_SEC):
                await client.connect(**self._options())
            is_made = True
        except NatsUnavailable as error:
            raise NatsUnavailable(f"{', '.join(self._shown_urls())}: {self._last_error or error}") from error
        finally:
            if not is_made:  # failed or cancelled: nobody else knows what there is of the connection
                with anyio.move_on_after(1, shield=True):
                    await client.close()
        self._client = client
        self._epoch += 1
        self._status = LinkStatus.CONNECTED
        self._feel_pulse(client)

    async def prepare(self) -> None:
        client = self._client
        if client is None or client.is_closed:
            raise LinkClosed("the connection to NATS is closed")
        with translating(), anyio.fail_after(PREPARE_SEC):
            made = await make_missing(JetStreamContext(client, timeout=REQUEST_SEC), self._names)
        if made:
            _log.info("made what was missing in JetStream: %s", ", ".join(made))

    async def next_status(self) -> LinkStatus:
        await self._status_changed.wait()
        self._status_changed = anyio.Event()
        assert self._status is not None
        return self._status

    def declare_up(self) -> None:
        if self._status is not LinkStatus.CONNECTED:
            return  # lost again while it was prepared; the next status says so
        self._is_declared_up = True
        if not self._is_silent:
            self._up.set()
        self._tell()

    def declare_down(self, problem: str) -> None:
        self._problem = problem
        if self._is_declared_up:
            self._is_declared_up = False
            self._up = anyio.Event()
            self._tell()

    async def close(self) -> None:
        client, self._client = self._client, None
        self._stop_pulse()
        self._status_changed = anyio.Event()
        if client is not None:
            try:
                with translating():
                    await client.close()  # not drain(): it blocks its whole time-out after a pull subscription
            except RuntimeError as error:  # nats-py writes what it has left; uvloop takes nothing for a lost connection
                _log.debug("closed a connection that was lost: %s", error)

    # -- what nats-py calls --------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        return {
            "servers": list(self._urls()),
            "name": self._name,
            "connect_timeout": 2,
            "allow_reconnect": True,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.25,  # first connect only; then the handler below decides
            "reconnect_to_server_handler": _next_server,
            "ping_interval": 10,
            "pending_size": 0,  # a publish while disconnected fails at once and leaves no ghost
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
            "closed_cb": self._on_closed,
        }

    async def _on_error(self, error: Exception) -> None:
        self._last_error = describe(error)
        _log.debug("nats: %s", self._last_error)

    async def _on_disconnected(self) -> None:
        if self._client is not None:
            self._stop_pulse()
            self.declare_down("the connection to NATS is lost; reconnecting")
            self._set(LinkStatus.LOST)

    async def _on_reconnected(self) -> None:
        if self._client is not None:
            self._feel_pulse(self._client)
        self._set(LinkStatus.CONNECTED)

    async def _on_closed(self) -> None:
        if self._client is not None:
            self._set(LinkStatus.CLOSED)

    # -- whether the server is there --------------------------------------------------------------------------------

    @property
    def _is_silent(self) -> bool:
        return self._pulse is not None and self._pulse.is_silent

    def _feel_pulse(self, client: Client) -> None:
        self._stop_pulse()
        self._pulse = Pulse(client, self._on_pulse)

    def _stop_pulse(self) -> None:
        if self._pulse is not None:
            self._pulse.stop()
            self._pulse = None

    def _on_pulse(self, is_silent: bool) -> None:
        if not is_silent:
            _log.info("the nats-server answers again")
            if self._is_declared_up:
                self._up.set()
            return
        _log.warning("%s", SILENT, extra={"err_id": "ERR-PYOCO-0003", "msg_id": "MSG-PYOCO-0003"})
        self._up = anyio.Event()
        for listener in tuple(self._silence_listeners):
            listener()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _set(self, status: LinkStatus) -> None:
        self._status = status
        self._status_changed.set()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _shown_urls(self) -> list[str]:
        return [url.split("://")[0] + "://" + url.rpartition("@")[2].rpartition("://")[2] for url in self._urls()]


def _next_server(servers: list[Server], info: object) -> tuple[Server, float]:
    """The server that failed least, after a pause that grows to 2 s and is spread, so that clients come out of step."""
    server = min(servers, key=lambda s: s.reconnects)
    return server, min(2.0, 0.05 * 2 ** min(server.reconnects, 8)) * random.uniform(0.5, 1.0)
