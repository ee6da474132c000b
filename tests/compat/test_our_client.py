"""Our client and our `pyoco-client` with the published gateway: what it has works, what it lacks is said plainly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyoco_runtime.client import GatewayRefused, PyocoHttpClient
from tests.compat.house import GREETING, House, ended, submit, url_of
from tests.integration.gateway_client import until
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"
WHEEL = wheel_name("pyoco_ours", "1.0")


@pytest.fixture
def client(house: House) -> Iterator[PyocoHttpClient]:
    """Ours, with their gateway."""
    with PyocoHttpClient(url_of(house.theirs)) as client:
        yield client


@pytest.mark.parametrize("tag", ["ours", "theirs"])
def test_a_run_from_its_submit_to_its_end(client: PyocoHttpClient, tag: str) -> None:
    """Submitted, watched to its end, read, listed, whoever works on it."""
    run_id = client.submit_run("hello", {"name": "Ada"}, tag=tag)["run_id"]
    assert client.wait(run_id, timeout_sec=30)["status"] == "COMPLETED"
    *_, last = client.watch(run_id)
    assert last.run["status"] == "COMPLETED"  # type: ignore[union-attr]
    first = next(each for each in client.watch_run(run_id) if each["event"] == "snapshot")
    assert first["data"]["snapshot"]["status"] == "COMPLETED"
    assert client.get_run(run_id)["flow_name"] == "hello"
    assert client.get_run_with_records(run_id)["task_records"]["greet"]["output"] == "Hello, Ada!"
    assert client.get_tasks(run_id)["tasks"]
    assert run_id in {each["run_id"] for each in client.list_runs(tag=tag, limit=200)}


def test_a_flow_yaml_and_a_cancel(client: PyocoHttpClient, tag: str) -> None:
    """Both as the published client has them."""
    run_id = client.submit_run_yaml(GREETING, flow_name="greeting", tag="ours")["run_id"]
    assert client.wait(run_id, timeout_sec=30)["status"] == "COMPLETED"
    waiting = client.submit_run("hello", tag=tag)["run_id"]
    assert client.cancel_run(waiting)["status"] == "CANCELLING"


def test_workers_wheels_and_metrics(client: PyocoHttpClient) -> None:
    """All that is not about runs."""
    assert {"our-worker", "their-worker"} <= {each["worker_id"] for each in client.get_workers()}
    client.patch_worker_hidden("our-worker", hidden=True)
    client.patch_worker_hidden("our-worker", hidden=False)
    client.upload_wheel(filename=WHEEL, data=wheel_of("pyoco_ours", "1.0"), tags=["nobody"])
    assert WHEEL in {each["name"] for each in client.list_wheels()}
    assert WHEEL in {each["wheel_name"] for each in client.list_wheel_history(limit=50)}
    client.delete_wheel(WHEEL)
    assert "pyoco_runs_total" in client.get_metrics()


def test_what_only_ours_has_is_refused(client: PyocoHttpClient) -> None:
    """With the status that it gave, and nothing was submitted."""
    with pytest.raises(GatewayRefused) as refused:
        client.submit_batch([{"flow_name": "hello"}])
    assert refused.value.status in (404, 405)
    with pytest.raises(GatewayRefused):
        client.list_dlq()


def ours(house: House, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run our program with their gateway to its end."""
    command = [sys.executable, "-m", "pyoco_runtime.cli.client.main", "--server", url_of(house.theirs), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_program_follows_a_run(house: House, tmp_path: Path) -> None:
    """Submit, watch, get, tasks, list, cancel: exit 0."""
    done = ours(house, "submit", "--flow-name", "hello", "--tag", "ours", cwd=tmp_path)
    run_id = json.loads(done.stdout)["run_id"]
    watched = ours(house, "watch", run_id, "--until-terminal", "--output", "status", cwd=tmp_path)
    assert (watched.returncode, "COMPLETED" in watched.stdout) == (0, True), watched.stderr
    for words in (["get", run_id, "--records"], ["tasks", run_id], ["list", "--limit", "5"], ["list-vnext"]):
        assert ours(house, *words, cwd=tmp_path).returncode == 0, words
    waiting = submit(house.theirs, "wait", "ours")
    assert ours(house, "cancel", "--run-id", waiting, "--wait", "--timeout-sec", "30", cwd=tmp_path).returncode == 0
    assert ended(house.ours, waiting)["status"] == "CANCELLED"


@pytest.mark.parametrize(
    "command", ["workers --output table", "workers --output plugins", "metrics", "wheels", "wheel-history", "doctor"]
)
def test_the_program_looks_around(house: House, tmp_path: Path, command: str) -> None:
    """Also the doctor, who cannot see all of it and says so."""
    done = until(lambda: ours(house, *command.split(), cwd=tmp_path), lambda done: "NoKeysError" not in done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", ["batch runs.jsonl", "dlq list", "actors"])
def test_the_program_says_what_the_gateway_lacks(house: House, tmp_path: Path, command: str) -> None:
    """And which one has it."""
    (tmp_path / "runs.jsonl").write_text('{"flow_name": "hello"}\n')
    done = ours(house, *command.split(), cwd=tmp_path)
    assert done.returncode == 1
    assert "needs a gateway of pyoco-runtime" in done.stderr
    assert "Traceback" not in done.stderr
