"""A worker is killed at each point of a run; a healthy one brings the run to its end."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from pyoco_runtime.testing.nats_server import nats_server
from tests.chaos.dying_worker import POINTS
from tests.chaos.laws import check_laws
from tests.integration.worker_client import Worker, WorkerClient, executions, worker, worker_client

PROGRAM = (sys.executable, str(Path(__file__).with_name("dying_worker.py")))
ACK_WAIT = {"PYOCO_CONSUMER_ACK_WAIT_SEC": "2"}
STORED = {"before-the-ack", "while-settling"}
"""Where the end of the run has been stored by the worker that dies."""
EXECUTIONS = {
    "before-the-claim": 1,
    "after-the-claim": 1,
    "at-the-first-task": 2,
    "before-the-end-is-stored": 2,
    "before-the-ack": 1,
    "while-settling": 1,
}


def test_a_run_ends_wherever_its_worker_is_killed(tmp_path: Path) -> None:
    """Once, for good; and it is executed again only if its end had not been stored.

    A tag and a worker for each point, all at the same time; then one healthy worker for all of them.
    """
    notes = tmp_path / "notes"
    with nats_server(tmp_path / "store") as server, worker_client(server.url) as client:
        runs = {point: client.submit("short", tag=point, notes=str(notes), seconds=0.1) for point in POINTS}
        _have_all_die(tmp_path, server.url)
        with worker(tmp_path, server.url, "--tags", ",".join(POINTS), name="healthy", **ACK_WAIT) as healthy:
            found = client.wait_all_terminal(runs.values())
            client.wait_no_jobs()
            assert healthy.terminate() == 0
        check_laws(client.revisions())
        _nothing_changes_any_more(client, tmp_path, server.url)
    done = executions(notes)
    ends = {point: (found[run_id].status, found[run_id].worker_id) for point, run_id in runs.items()}
    assert ends == {point: ("COMPLETED", point if point in STORED else "healthy") for point in POINTS}
    assert {point: len(done[run_id]) for point, run_id in runs.items()} == EXECUTIONS


def _have_all_die(cwd: Path, url: str) -> None:
    with ExitStack() as stack:
        dying: list[Worker] = [
            stack.enter_context(worker(cwd, url, "--tags", point, name=point, program=(*PROGRAM, point), **ACK_WAIT))
            for point in POINTS
        ]
        for each in dying:
            assert each.wait() == -signal.SIGKILL, each.account()


def _nothing_changes_any_more(client: WorkerClient, cwd: Path, url: str) -> None:
    """Another worker comes, does some work, and leaves what has ended alone."""
    before = client.revisions()
    with worker(cwd, url, "--tags", ",".join(POINTS), name="late"):
        after = client.submit("short", tag="before-the-ack")
        client.wait_terminal(after)
    assert {run_id: snapshots for run_id, snapshots in client.revisions().items() if run_id != after} == before
