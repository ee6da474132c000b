"""The house in which both live: one NATS, a gateway and a worker of ours, a gateway and a worker of the peer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pyoco_runtime.testing.nats_server import nats_server
from tests.compat.house import LIMITS, House
from tests.compat.peer import FLOWS, peer_gateway, peer_worker, require
from tests.integration.gateway_client import gateway, good, until
from tests.integration.worker_client import worker

_tags = (f"t{number}" for number in itertools.count())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all tests of this folder, so that they share the house."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("compat"))


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Runs for all tests of this folder."""
    require()
    place = tmp_path_factory.mktemp("house")
    with (
        nats_server(place / "store") as nats,
        gateway(place, nats.url, name="ours", **LIMITS) as ours,
        peer_gateway(place, nats.url, **LIMITS) as theirs,
        worker(place, nats.url, "--tags", "ours", "--flow-resolver", f"{FLOWS}:resolve", name="our-worker"),
        peer_worker(place, nats.url, name="their-worker", tags="theirs", PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC="1"),
    ):
        until(lambda: _workers(ours.http), lambda found: found == {"our-worker", "their-worker"})
        yield House(place, nats.url, ours.http, theirs.http)


def _workers(http: httpx.Client) -> set[str]:
    return {each["worker_id"] for each in good(http.get("/workers"))}


@pytest.fixture
def tag() -> str:
    """A tag of this test alone; nobody works on it."""
    return next(_tags)
