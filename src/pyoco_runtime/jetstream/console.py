"""The console over NATS micro services: `$SRV.PING|INFO|STATS` find it, `pyoco.console.>` speaks with it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from attrs import frozen
from nats.aio.client import Client
from nats.micro.request import Request
from nats.micro.service import EndpointConfig, Service, ServiceConfig

from pyoco_runtime.errors import ActorError, NatsUnavailable
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.translate import translating
from pyoco_runtime.model.house import RestartAnswer, to_bytes
from pyoco_runtime.ports import Desk

_log = logging.getLogger(__name__)

SERVICE = "pyoco-console"
TREE = "pyoco.console.tree"
CHANGED = "pyoco.console.changed"


def restart_subject(process: str) -> str:
    """Where one process takes requests to restart an actor; the body is the actor's path or name."""
    return f"pyoco.console.restart.{process}"


@frozen
class NatsConsoleService:
    """Implements ports.ConsoleService."""

    client: Client
    epoch: int
    process: str

    async def notify(self) -> None:
        with translating():
            await self.client.publish(CHANGED, self.process.encode())


class NatsConsoleHost:
    """Implements ports.ConsoleHost for one process."""

    def __init__(self, link: NatsLink, process: str, version: str) -> None:
        self._link = link
        self._process = process
        self._version = version

    @asynccontextmanager
    async def serving(self, desk: Desk) -> AsyncIterator[NatsConsoleService]:
        client = self._link.client()
        service = Service(client, self._config())
        try:
            await self._opened(service, client, desk)
            yield NatsConsoleService(client, self._link.epoch, self._process)
        finally:
            await _close(service, client)

    async def _opened(self, service: Service, client: Client, desk: Desk) -> None:
        # nats-py's flush waits 10 s for an answer that a lost connection never brings: leave with the link
        with translating(), anyio.CancelScope() as opening:
            unwatch = self._link.on_change(opening.cancel)
            try:
                await self._open(service, client, desk)
            finally:
                unwatch()
        if opening.cancelled_caught:
            raise NatsUnavailable("the connection was lost while the console opened")

    def _config(self) -> ServiceConfig:
        return ServiceConfig(
            name=SERVICE,
            version=self._version,
            description="the supervision tree of a pyoco-runtime process",
            metadata={"process": self._process},
            queue_group=self._process,  # every process answers for itself
        )

    async def _open(self, service: Service, client: Client, desk: Desk) -> None:
        await service.start()

        async def tree(request: Request) -> None:
            await request.respond(to_bytes(desk.report()))

        async def restart(request: Request) -> None:
            # the answer leaves first: the actor may be the link or this console
            actor = request.data.decode(errors="replace")
            try:
                path = desk.resolve(actor)
            except ActorError as error:
                await request.respond(to_bytes(RestartAnswer(problem=str(error))))
                return
            await request.respond(to_bytes(RestartAnswer(path=path)))
            await client.flush()
            desk.restart(path)

        await service.add_endpoint(EndpointConfig(name="tree", subject=TREE, handler=tree))
        subject = restart_subject(self._process)
        await service.add_endpoint(EndpointConfig(name="restart", subject=subject, handler=restart))


async def _close(service: Service, client: Client) -> None:
    if client.is_closed:
        return  # the subscriptions are gone with the connection
    try:
        with translating(), anyio.move_on_after(2, shield=True):
            await service.stop()
    except NatsUnavailable as error:
        _log.debug("the console left while the connection was down: %s", error)
