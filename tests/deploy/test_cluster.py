"""Three NATS servers as docs/how-to/operate-nats.md sets them up: one is killed under load, and every run ends."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from nats.js import JetStreamContext

from pyoco_runtime.nats_server import find_binary
from tests.deploy.manifests import ROOT
from tests.integration.gateway_client import Gateway, gateway, good, until
from tests.integration.programs import program
from tests.integration.test_resources import ask
from tests.integration.worker_client import FLOWS

PAGE = ROOT / "docs/how-to/operate-nats.md"
RUNS = 60


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody has now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def config_of_the_page(name: str, place: Path, client: int, routes: list[int], own: int) -> str:
    """The page's configuration with this machine's ports."""
    found = re.search(r"```text\n(server_name: .+?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, "the page shows no configuration"
    text = (
        found[1].replace("server_name: nats-1", f"server_name: {name}").replace("0.0.0.0:4222", f"127.0.0.1:{client}")
    )
    text = text.replace("0.0.0.0:6222", f"127.0.0.1:{own}").replace("/var/lib/nats", str(place / name))
    for number, port in enumerate(routes, 1):
        text = text.replace(f"nats://nats-{number}:6222", f"nats://127.0.0.1:{port}")
    assert "nats-1:6222" not in text
    return text


@contextmanager
def cluster(place: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Three servers; yields their URLs and their processes, which are ended after the block."""
    ports = free_ports(6)
    clients, routes = ports[:3], ports[3:]
    servers: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(3):
            config = place / f"nats-{number + 1}.conf"
            config.write_text(config_of_the_page(f"nats-{number + 1}", place, clients[number], routes, routes[number]))
            command = [str(find_binary()), "--config", str(config), "--log", str(config.with_suffix(".log"))]
            servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        yield ",".join(f"nats://127.0.0.1:{port}" for port in clients), servers
    finally:
        for server in servers:
            server.kill()
            server.wait()


def submit_surely(started: Gateway, key: str) -> str:
    """Submit until it is accepted: with a key of its own a run is made once, however often it is asked for."""

    def ask() -> httpx.Response:
        body = {"flow_name": "short", "params": {"seconds": 0.05}}
        return started.http.post("/runs", json=body, headers={"Idempotency-Key": key})

    return str(good(until(ask, lambda answer: answer.status_code != 503))["run_id"])


def test_a_server_of_three_is_killed_under_load_and_every_run_ends(tmp_path: Path) -> None:
    """With PYOCO_NATS_REPLICAS=3 nothing that was accepted is lost, and everything is on three servers."""
    with (
        cluster(tmp_path) as (urls, servers),
        gateway(tmp_path, urls, PYOCO_NATS_REPLICAS="3") as started,
        program(
            tmp_path, "--role", "worker", "--nats-url", urls, "--flow-resolver", f"{FLOWS}:resolve",
            PYOCO_NATS_REPLICAS="3",
        ) as worker,
    ):  # fmt: skip
        worker.until("connected to NATS")
        runs = [submit_surely(started, f"before-{number}") for number in range(RUNS // 2)]
        servers[0].kill()
        servers[0].wait()
        runs += [submit_surely(started, f"after-{number}") for number in range(RUNS // 2)]
        for run_id in runs:
            until(
                lambda run_id=run_id: started.http.get(f"/runs/{run_id}"),  # type: ignore[misc]
                lambda answer: answer.status_code == 200 and answer.json()["status"] == "COMPLETED",
            )
        ask(urls.rpartition(",")[2], replicas_are_three)
    assert len(set(runs)) == RUNS


async def replicas_are_three(js: JetStreamContext) -> None:
    """Of every stream and bucket, and of the queue's consumer."""
    streams = await js.streams_info()
    assert {stream.config.num_replicas for stream in streams} == {3}
    assert len(streams) == 8
    consumer = await js.consumer_info("PYOCO_WORK", "pyoco_workers_default")
    assert consumer.cluster is not None
    assert len(consumer.cluster.replicas or ()) == 2  # beside the leader
