"""Every test of this folder runs in memory, in virtual time, on both backends, and on a real nats-server."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest
from attrs import frozen

from pyoco_runtime.testing.nats_server import nats_server
from pyoco_runtime.testing.virtual_time import Backend, run_virtual
from tests.conformance.memory_world import MemoryWorld
from tests.conformance.world import World

PATIENCE_SEC = 30.0

Test = Callable[[World], Awaitable[None]]


@frozen
class InMemory:
    """Opens a world in memory for one test."""

    backend: Backend

    def run(self, test: Test) -> None:
        async def main() -> None:
            with anyio.fail_after(PATIENCE_SEC):
                await test(MemoryWorld())

        run_virtual(main, backend=self.backend)


@frozen
class OnJetStream:
    """Opens a world on the server for one test."""

    url: str

    def run(self, test: Test) -> None:
        from tests.conformance.jetstream_world import jetstream_world  # nats-py is no part of the memory tests

        async def main() -> None:
            with anyio.fail_after(PATIENCE_SEC):
                async with jetstream_world(self.url) as world:
                    await test(world)

        anyio.run(main)


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of this module."""
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server.url


@pytest.fixture(params=["memory-trio", "memory-asyncio", "jetstream"])
def world(request: pytest.FixtureRequest) -> InMemory | OnJetStream:
    """Where the test runs; the test itself gets the opened world."""
    match request.param:
        case "memory-trio":
            return InMemory("trio")
        case "memory-asyncio":
            return InMemory("asyncio")
        case _:
            return OnJetStream(request.getfixturevalue("nats_url"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    where = given.pop("world")
    assert isinstance(where, InMemory | OnJetStream)
    where.run(functools.partial(pyfuncitem.obj, **given))
    return True
