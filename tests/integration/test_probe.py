"""The probe port of a worker."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.programs import wait_ready
from tests.integration.pyoco_programs import running

FLOWS = str(Path(__file__).parents[2] / "examples" / "hello_flow.py") + ":resolve"


def test_health_and_ready_and_nothing_else(tmp_path: Path) -> None:
    """Ready with NATS, not ready without it, with the reason; alive all the time."""
    with (
        nats_server(tmp_path / "store") as nats,
        running("worker", "--nats-url", nats.url, "--probe-port", "0", cwd=tmp_path) as worker,
    ):
        url = worker.url()
        wait_ready(url)
        assert httpx.get(f"{url}/runs").status_code == 404
        nats.stop()
        worker.until("connection to NATS")
        answer = httpx.get(f"{url}/ready")
        assert answer.status_code == 503
        assert "nats" in answer.json()["detail"]["missing"][0]
        assert httpx.get(f"{url}/health").json() == {"status": "ok"}
        nats.start()
        wait_ready(url)
        assert worker.stop(signal.SIGTERM) == 0


def test_it_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    """An empty variable is none."""
    with nats_server(tmp_path / "store") as nats:
        with running("worker", "--nats-url", nats.url, cwd=tmp_path, PYOCO_WORKER_PROBE_PORT="") as worker:
            worker.until("connected to NATS")
            assert worker.stop(signal.SIGTERM) == 0
        assert not [line for line in worker.lines if "is listening on" in line["message"]]


def test_a_worker_that_drains_is_alive_and_not_ready(tmp_path: Path) -> None:
    """While its last run is brought to its end, the probe says so."""
    with (
        nats_server(tmp_path / "store") as nats,
        running("server", "--port", "0", "--nats-url", nats.url, cwd=tmp_path) as gateway,
        running(
            *("worker", "--nats-url", nats.url, "--probe-port", "0", "--flow-resolver", FLOWS), cwd=tmp_path
        ) as worker,
    ):
        api, probe = gateway.url(), worker.url()
        wait_ready(api)
        wait_ready(probe)
        run_id = httpx.post(f"{api}/runs", json={"flow_name": "slow", "params": {"seconds": 3}}).json()["run_id"]
        with httpx.stream("GET", f"{api}/runs/{run_id}/watch", timeout=20) as news:
            assert any('"RUNNING"' in line for line in news.iter_lines())
        worker.process.send_signal(signal.SIGTERM)
        deadline = 200
        while (answer := httpx.get(f"{probe}/ready")).status_code == 200 and deadline:
            deadline -= 1
        assert answer.status_code == 503
        assert "stopping" in answer.text
        assert httpx.get(f"{probe}/health").status_code == 200
        assert worker.finish() == 0
