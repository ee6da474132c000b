"""The program `pyoco-worker`."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import httpx
import pytest
from nats.aio.client import Client

from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.integration.programs import wait_ready
from tests.integration.pyoco_programs import run, running

FLOWS = str(Path(__file__).parents[2] / "examples" / "hello_flow.py") + ":resolve"


def _left(server: RunningServer) -> tuple[int, int]:
    """How many jobs are stored, and how many of the tag default are out and not acked."""

    async def ask() -> tuple[int, int]:
        client = Client()
        await client.connect(server.url)
        try:
            js = client.jetstream()
            stored = (await js.stream_info("PYOCO_WORK")).state.messages
            return stored, (await js.consumer_info("PYOCO_WORK", "pyoco_workers_default")).num_ack_pending or 0
        finally:
            await client.close()

    return anyio.run(ask)


def test_run_once_takes_exactly_one_run(tmp_path: Path) -> None:
    """Of three that wait one is executed and acked; the others stay in the queue, in nobody's hands."""
    with (
        nats_server(tmp_path / "store") as nats,
        running("server", "--port", "0", "--nats-url", nats.url, cwd=tmp_path) as gateway,
    ):
        url = gateway.url()
        wait_ready(url)
        ids = [httpx.post(f"{url}/runs", json={"flow_name": "hello"}).json()["run_id"] for _ in range(3)]
        done = run(
            *("worker", "--nats-url", nats.url, "--flow-resolver", FLOWS, "--tags", "default,other", "--run-once"),
            *("--poll-timeout", "10", "--worker-id", "once"),
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert _left(nats) == (2, 0)
        found = [httpx.get(f"{url}/runs/{each}").json()["status"] for each in ids]
        assert sorted(found) == ["COMPLETED", "PENDING", "PENDING"]
        assert gateway.stop(signal.SIGTERM) == 0


def test_run_once_ends_when_no_run_comes(tmp_path: Path) -> None:
    """After the poll time, with 0, as the published program."""
    with nats_server(tmp_path / "store") as nats:
        done = run("worker", "--nats-url", nats.url, "--run-once", "--poll-timeout", "0.2", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert _left(nats) == (0, 0)


def test_sigterm_drains(tmp_path: Path) -> None:
    """The worker ends in order, with 0."""
    with nats_server(tmp_path / "store") as nats, running("worker", "--nats-url", nats.url, cwd=tmp_path) as worker:
        worker.until("connected to NATS")
        assert worker.stop(signal.SIGTERM) == 0
        assert worker.lines[-1]["message"] == "stopped"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--poll-timeout", "soon"], "for example: pyoco-worker --tags"),
        (["--unknown"], "for example: pyoco-worker --tags"),
        (["--flow-resolver", "missing.py:resolve"], "--flow-resolver examples/hello_flow.py:resolve"),
        (["--concurrency", "none"], "is not a whole number"),
    ],
)
def test_a_wrong_command_line_is_explained(tmp_path: Path, arguments: list[str], said: str) -> None:
    """Exit 1, and stderr has a correct example."""
    done = run("worker", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


def test_help_and_check(tmp_path: Path) -> None:
    """--help has the smallest example; --check takes every published option and starts nothing."""
    assert "smallest working example" in run("worker", "--help", cwd=tmp_path).stdout
    published = ["--nats-url", "nats://127.0.0.1:1", "--tags", "a, b", "--worker-id", "w", "--wheel-sync"]
    published += ["--wheel-sync-dir", "wheels", "--wheel-sync-interval-sec", "5", "--wheel-install-timeout-sec", "60"]
    done = run("worker", *published, "--poll-timeout", "1", "--run-once", "--check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wheel-syncer" in done.stdout
    assert "a,b" in done.stdout
