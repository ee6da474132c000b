"""The listening socket of one port."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from pyoco_runtime.errors import AddressInUse, UserError

_BACKLOG = 2048  # connections that wait while the http actor restarts; Linux caps it at net.core.somaxconn
_BATCH = 64  # connections taken in one go, so that a flood of them does not starve the requests already here
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_GONE_AGAIN = (BlockingIOError, InterruptedError, ConnectionAbortedError)


class Listener:
    """Listens on `host:port` from its construction on, port 0 being any free one; raises AddressInUse, UserError.

    It belongs to the tree and outlives the http actor: a request sent while the actor restarts waits in the backlog
    and is answered by the next life. `option` is what the user would change to choose another port.
    """

    def __init__(self, host: str, port: int, *, option: str = "--port") -> None:
        self._socket = _listen(host, port, option)

    @property
    def port(self) -> int:
        """The port, also when any free one was asked for."""
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        host: str = self._socket.getsockname()[0]
        host = _ANYWHERE.get(host, host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def fileno(self) -> int:
        """The descriptor to wait on; readable when somebody has connected."""
        return self._socket.fileno()

    def accept(self) -> Iterator[socket.socket]:
        """Take who has connected, at most one batch, without waiting; raises OSError when descriptors run out."""
        for _ in range(_BATCH):
            try:
                connection, _ = self._socket.accept()
            except _GONE_AGAIN:
                return
            connection.setblocking(False)
            yield connection

    def close(self) -> None:
        """Stop listening; whoever still waits in the backlog is refused."""
        self._socket.close()


def _listen(host: str, port: int, option: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise UserError(f"cannot listen on {host}:{port}: {host!r} is not an address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by what it accepts
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _translated(error, f"{host}:{port}", option) from error
    return listening


def _translated(error: OSError, address: str, option: str) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"{address} is in use by another program: stop it, or choose another port with {option}, "
            f"or any free one with {option} 0"
        )
    return UserError(f"cannot listen on {address}: {error.strerror}; choose another address or {option}")
