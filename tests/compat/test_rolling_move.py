"""The move from pyoco-server 0.5.1 on a live NATS: its gateways and workers are replaced one by one, under load."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import frozen

from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.testing.nats_server import nats_server
from tests.compat.house import steady
from tests.compat.peer import BIN, FLOWS, PeerProcess, peer_gateway, peer_worker, require
from tests.integration.gateway_client import Gateway, good, until
from tests.integration.programs import environment
from tests.integration.worker_client import PATIENCE_SEC, PROGRAM, Worker, WorkerClient, worker, worker_client

RUNS = 500
PER_SEC = 25.0
LONG_SEC = 1.0  # of one run in 25, as the submitter has it
SUBMITTER = Path(__file__).with_name("peer_submitter.py")
SOON = {"PYOCO_CONSUMER_ACK_WAIT_SEC": "5", "PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC": "1"}
"""What a stopped worker held is delivered again after the ack wait."""


class Users:
    """The process of those who submit, and what they have told."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.tries: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [str(BIN / "python"), str(SUBMITTER), str(RUNS), str(PER_SEC), *urls],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_accepted(self, count: int) -> None:
        """Wait until so many runs are accepted."""
        until(lambda: len(self.accepted()), lambda found: found >= count)

    def accepted(self) -> list[str]:
        """The runs that they know of."""
        return [each["run_id"] for each in list(self.tries) if each["outcome"] == "accepted"]

    def finish(self) -> None:
        """Wait until all is submitted."""
        assert self.process.wait(PATIENCE_SEC) == 0
        self._reader.join(PATIENCE_SEC)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            self.tries.extend(map(json.loads, self.process.stdout))


@frozen
class Estate:
    """What runs, and what is to take its place."""

    place: Path
    nats_url: str
    stack: ExitStack
    client: WorkerClient

    def replace_gateway(self, port: int, old: PeerProcess) -> httpx.Client:
        """Stop one of theirs under load and start one of ours on its port."""
        old.stop(signal.SIGTERM)
        return self.stack.enter_context(our_gateway(self.place, self.nats_url, port)).http

    def replace_worker(self, name: str, old: PeerProcess, number: signal.Signals, gate: httpx.Client) -> None:
        """Start one of ours; stop one of theirs in the middle of a long run, which is then delivered again."""
        args = ("--tags", "rolling", "--flow-resolver", f"{FLOWS}:resolve")
        self.stack.enter_context(worker(self.place, self.nats_url, *args, name=f"new-{name}", **SOON))
        until(lambda: is_in_a_long_run(name, gate), bool)
        old.stop(number)


def is_in_a_long_run(name: str, gate: httpx.Client) -> bool:
    """So a stop cannot fall between the end of a run and its ack: the next of their workers would run it again."""
    records = {each["worker_id"]: each for each in good(steady(lambda: gate.get("/workers")))}
    run_id = records[name]["current_run_id"]
    run = good(gate.get(f"/runs/{run_id}")) if run_id else {"params": {}}
    return bool(run["params"] == {"seconds": LONG_SEC} and run["tasks"].get("nap") == "RUNNING")


@contextmanager
def our_gateway(place: Path, nats_url: str, port: int) -> Iterator[Gateway]:
    """A gateway of ours on this port."""
    command = [*PROGRAM, "--role", "gateway", "--nats-url", nats_url, "--port", str(port)]
    process = Worker(command, place, environment(PYOCO_PROCESS_NAME=f"new-{port}"), f"new-{port}", nats_url)
    try:
        gate = Gateway(process)
    except BaseException:
        process.close()
        raise
    try:
        gate.until_ready()
        yield gate
    finally:
        gate.close()


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    """NATS, an observer that keeps every revision, and nothing else yet."""
    require()
    with ExitStack() as stack:
        nats = stack.enter_context(nats_server(tmp_path / "store"))
        client = stack.enter_context(worker_client(nats.url))
        yield Estate(tmp_path, nats.url, stack, client)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has at this moment."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in held]


def test_everything_is_replaced_while_users_submit(estate: Estate) -> None:
    """Every accepted run ends, once; nobody sees more than a gateway that is away for a moment."""
    ports = free_ports(2)
    enter = estate.stack.enter_context
    gates = [enter(peer_gateway(estate.place, estate.nats_url, str(port))) for port in ports]
    names = ("old-1", "old-2")
    workers = [enter(peer_worker(estate.place, estate.nats_url, name=it, tags="rolling", **SOON)) for it in names]
    users = Users([gate.url for gate in gates])
    estate.stack.callback(users.process.kill)
    users.wait_accepted(RUNS // 10)
    estate.replace_worker(names[0], workers[0], signal.SIGTERM, gates[1].http)
    users.wait_accepted(RUNS * 3 // 10)
    gate = estate.replace_gateway(ports[0], gates[0].process)
    users.wait_accepted(RUNS // 2)
    estate.replace_worker(names[1], workers[1], signal.SIGINT, gate)
    users.wait_accepted(RUNS * 7 // 10)
    estate.replace_gateway(ports[1], gates[1].process)
    users.finish()
    estate.client.wait_all_terminal(users.accepted())
    estate.client.wait_no_jobs()
    check_outcomes(users)
    check_stories(estate.client.revisions(), set(users.accepted()))


def check_outcomes(users: Users) -> None:
    """Success, 503, or a connection that was refused or closed by a gateway of theirs that stopped."""
    outcomes = Counter(each["outcome"] for each in users.tries)
    assert outcomes["accepted"] == RUNS
    assert set(outcomes) <= {"accepted", "503", "refused", "closed"}, outcomes
    assert outcomes["refused"] > 0, "no gateway was ever away: the test proves nothing"
    assert outcomes["closed"] <= 2, outcomes  # at most the one connection that was open when each of them stopped


def check_stories(revisions: Mapping[str, list[RunSnapshot]], accepted: set[str]) -> None:
    """Every stored run has ended COMPLETED, and nothing but the same end was written after its end."""
    assert accepted <= set(revisions)
    for run_id, snapshots in revisions.items():
        story = [(each.status, each.worker_id, str(each.attempt)) for each in snapshots]
        first = next((n for n, each in enumerate(snapshots) if each.status.is_terminal), None)
        assert first is not None, f"run {run_id} has not ended: {story}"
        assert {each.status for each in snapshots[first:]} == {"COMPLETED"}, f"run {run_id}: {story}"
        ends_of_ours = [each for each in snapshots if each.status.is_terminal and each.attempt is not None]
        assert len(ends_of_ours) <= 1, f"run {run_id} was ended twice by us: {story}"
        if ends_of_ours:
            assert first == len(snapshots) - 1, f"run {run_id} was written to after its end: {story}"
