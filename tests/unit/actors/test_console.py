"""The console actor on memory ports, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from attrs import define

from pyoco_runtime.actors.console import Console
from pyoco_runtime.core import ActorSpec, Feed, Ready, Supervisor, SupervisorSpec
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.house import ActorReport, ProcessReport
from pyoco_runtime.ports import Desk
from pyoco_runtime.testing.memory_link import MemoryLink
from pyoco_runtime.testing.stress import stress_start_cancel


class EmptyDesk:
    """A desk with nothing on it."""

    def report(self) -> ProcessReport:
        return ProcessReport("p", "all", "h", 1, "0", 0.0, ActorReport("runtime", "runtime", True, "running", 0.0))

    def resolve(self, actor: str) -> str:
        return actor

    def restart(self, path: str) -> None:
        raise AssertionError("nobody asked")


@define
class MemoryService:
    """Counts notices."""

    epoch: int
    notices: int = 0

    async def notify(self) -> None:
        self.notices += 1


class MemoryHost:
    """Opens the console; refuses the first times if told to."""

    def __init__(self, link: MemoryLink, refuse: int = 0) -> None:
        self.services: list[MemoryService] = []
        self.open = 0
        self._link = link
        self._refuse = refuse

    @asynccontextmanager
    async def serving(self, desk: Desk) -> AsyncIterator[MemoryService]:
        if self._refuse > 0:
            self._refuse -= 1
            raise NatsUnavailable("gone again")
        self.services.append(MemoryService(self._link.epoch))
        self.open += 1
        try:
            yield self.services[-1]
        finally:
            self.open -= 1


@pytest.mark.trio
async def test_it_opens_with_the_link_and_anew_with_every_connection(autojump_clock: object) -> None:
    """A burst of events is one notice; nothing is said while the link is down; a new epoch is a new service."""
    link, feed = MemoryLink(), Feed()
    host = MemoryHost(link, refuse=2)
    spec = SupervisorSpec("root", (ActorSpec("console", lambda: Console(EmptyDesk(), host, link, feed)),))
    async with Supervisor(spec):
        await trio.sleep(10)
        assert host.services == []
        await link.connect()
        link.declare_up()
        await trio.sleep(10)
        said = host.services[0].notices
        for _ in range(100):
            feed.publish(Ready("x", 0.0, 1))
        await trio.sleep(10)
        assert host.services[0].notices == said + 1
        link.declare_down("lost")
        await trio.sleep(10)
        assert host.services[0].notices == said + 1
        await link.connect()
        link.declare_up()
        await trio.sleep(10)
        assert [service.epoch for service in host.services] == [1, 2]
        assert host.open == 1
    assert host.open == 0


def test_the_console_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""
    feed = Feed()

    def make() -> Console:
        link = MemoryLink()
        link.declare_up()
        return Console(EmptyDesk(), MemoryHost(link, refuse=1), link, feed)

    stress_start_cancel(make)
    assert feed._listeners == []
