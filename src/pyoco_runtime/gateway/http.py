"""The http actor: Hypercorn on a socket that the tree owns."""

from __future__ import annotations

import errno
import logging
import resource

import anyio
from hypercorn.typing import ASGIFramework

from pyoco_runtime.core import Context
from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.gateway.connections import Connections
from pyoco_runtime.gateway.life_config import HEAD_SEC, KEEP_ALIVE_SEC, LifeConfig
from pyoco_runtime.gateway.listener import Listener

MAX_CONNECTIONS = 10_000  # some 20 kB each while they are idle
_OTHER_FILES = 256  # descriptors that stay for NATS, child processes, files, and those who are refused
_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_SHORTAGE_PAUSE_SEC = 1.0  # long enough for a few connections to end

_log = logging.getLogger("pyoco_runtime.http")


class Http:
    """Serves `app` on `listener` until asked to stop; answers what is under way within `grace_sec`, then cuts it.

    Runs on asyncio only, as the runtime's own programs do. `grace_sec` must be less than the actor's shutdown time.

    The accepting is ours and not `hypercorn.asyncio.serve`'s: that one drops connections which it has accepted and
    not yet read from when it stops, waits without limit for a client that does not read (Python 3.12+), and leaves
    its handlers running when it is cancelled.
    """

    def __init__(
        self,
        app: ASGIFramework,
        listener: Listener,
        grace_sec: float,
        *,
        closing: Closing | None = None,
        max_connections: int = MAX_CONNECTIONS,
        keep_alive_sec: float = KEEP_ALIVE_SEC,
        head_sec: float = HEAD_SEC,
    ) -> None:
        self._app = app
        self._listener = listener
        self._grace_sec = grace_sec
        self._closing = closing or Closing()
        self._max_connections = max_connections
        self._keep_alive_sec = keep_alive_sec
        self._head_sec = head_sec

    async def run(self, context: Context) -> None:
        """Serve until asked to stop; when it returns or raises, no connection and no handler is left."""
        self._closing.renew()
        config = LifeConfig(keep_alive_sec=self._keep_alive_sec, head_sec=self._head_sec)
        connections = Connections(self._app, config, _affordable(self._max_connections))
        try:
            _log.debug("serving on %s", self._listener.url)
            context.ready()
            with context.until_stopping():
                await self._accept(connections)
            self._closing.begin()
            with anyio.move_on_after(self._grace_sec):
                await connections.drain()
        finally:
            with anyio.CancelScope(shield=True):
                await connections.cut()

    async def _accept(self, connections: Connections) -> None:
        while True:
            # the only place to be cancelled at: between accepting a connection and serving it none can be lost
            await anyio.wait_readable(self._listener)
            try:
                for accepted in self._listener.accept():
                    connections.add(accepted)
            except OSError as error:
                if error.errno not in _SHORTAGE:
                    raise
                _log.warning("cannot take more connections for now: %s", error.strerror)
                await anyio.sleep(_SHORTAGE_PAUSE_SEC)


def _affordable(wanted: int) -> int:
    """As many connections as were asked for, unless the limit of open files of this process is lower."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY or wanted <= files - _OTHER_FILES:
        return wanted
    most = max(1, files - _OTHER_FILES)
    _log.info("at most %d connections: this process may open %d files (ulimit -n)", most, files)
    return most
