"""The actor that keeps the embedded nats-server running."""

from __future__ import annotations

from collections.abc import Callable

from pyoco_runtime.core import Context
from pyoco_runtime.nats_server import NatsServer, ServerProcess


class Nats:
    """One life of the embedded server; `server` belongs to the tree and remembers the port across lives."""

    def __init__(self, server: NatsServer, on_address: Callable[[str], None] | None = None) -> None:
        self._server = server
        self._on_address = on_address

    async def run(self, context: Context) -> None:
        """Serve until asked to stop; raises NatsServerDied, AddressInUse, StoreLocked."""
        async with self._server.launched() as process:
            with context.until_stopping():
                await process.until_ready()
                self._tell_address()
                context.ready()
                await self._until_death(process)

    def _tell_address(self) -> None:
        if self._on_address is not None and self._server.address is not None:
            self._on_address(self._server.address)

    async def _until_death(self, process: ServerProcess) -> None:
        await process.wait()
        raise process.death()
