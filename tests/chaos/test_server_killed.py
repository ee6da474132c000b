"""The nats-server is killed and restarted under load."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyoco_runtime.testing.nats_server import nats_server
from tests.chaos.laws import check_laws
from tests.integration.worker_client import executions, worker, worker_client

RUNS = 300


def test_every_run_completes_when_the_server_is_killed_under_load(tmp_path: Path) -> None:
    """Twice, with two workers, while runs are submitted, executed and recorded."""
    notes = tmp_path / "notes"
    ack_wait = {"PYOCO_CONSUMER_ACK_WAIT_SEC": "2"}
    with (
        nats_server(tmp_path / "store") as server,
        worker_client(server.url) as client,
        worker(tmp_path, server.url, **ack_wait) as first,
        worker(tmp_path, server.url, name="w2", **ack_wait) as second,
        ThreadPoolExecutor(1) as gateway,
    ):
        run_ids: list[str] = []

        def submit() -> None:
            for _ in range(RUNS):
                run_ids.append(client.submit("short", notes=str(notes), seconds=0.01))

        submitting = gateway.submit(submit)
        for share in (RUNS // 3, 2 * RUNS // 3):
            client.wait_count(share)
            server.kill()
            server.start()
        submitting.result()
        found = client.wait_all_terminal(run_ids)
        client.wait_no_jobs()
        problem = first.account() + second.account()
        assert {each.status for each in found.values()} == {"COMPLETED"}, problem
        check_laws(client.revisions())
        for each in (first, second):
            assert each.terminate() == 0, each.account()
    assert executions(notes).keys() == set(run_ids)


def test_a_fencing_token_belongs_to_one_execution(tmp_path: Path) -> None:
    """Also when the server is killed at the moment of a delivery and does not remember it."""
    notes, release = tmp_path / "notes", tmp_path / "release"
    settings = {"PYOCO_CONSUMER_ACK_WAIT_SEC": "2"}
    with (
        nats_server(tmp_path / "store") as server,
        worker_client(server.url) as client,
        worker(tmp_path, server.url, "--concurrency", "8", **settings),
        worker(tmp_path, server.url, "--concurrency", "8", name="w2", **settings) as second,
    ):
        second.wait_said("connected to NATS")
        client.wait_all_terminal([client.submit("short") for _ in range(20)])
        run_ids = [client.submit("gate", release=str(release), notes=str(notes)) for _ in range(8)]
        server.kill()
        server.start()
        for run_id in run_ids:
            client.wait_running(run_id)
        for run_id in run_ids:  # a second execution begins at once, or after the ack wait
            client.wait_run(run_id, lambda found: found.heartbeat_at - found.start_time > 3)  # type: ignore[operator]
        release.touch()
        client.wait_all_terminal(run_ids)
        client.wait_no_jobs()
        check_laws(client.revisions())
    twice = {run_id: found for run_id, found in executions(notes).items() if len(set(found)) < len(found)}
    assert twice == {}
