"""Every gateway with every worker, and both gateways on one NATS: whoever does what, all see the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.compat.house import GREETING, House, cancelled, ended, status, steady, submit, url_of
from tests.compat.peer import FLOWS, call, library, peer_worker
from tests.integration.gateway_client import good, until
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of
from tests.integration.worker_client import worker

ANSWER = """
version: 1
flow: {graph: answer}
tasks:
  answer: {callable: "PACKAGE:answer"}
"""
GATES: dict[str, Callable[[House], httpx.Client]] = {"ours": lambda it: it.ours, "theirs": lambda it: it.theirs}


@pytest.fixture(params=GATES)
def gate(request: pytest.FixtureRequest, house: House) -> httpx.Client:
    """Each gateway."""
    return GATES[request.param](house)


@pytest.fixture
def other(house: House, gate: httpx.Client) -> httpx.Client:
    """The other one."""
    return house.theirs if gate is house.ours else house.ours


@pytest.fixture(params=["ours", "theirs"])
def tag(request: pytest.FixtureRequest) -> str:
    """The tag of each worker."""
    return str(request.param)


def submit_yaml(http: httpx.Client, text: str, tag: str) -> str:
    """POST /runs/yaml; returns the run's id."""
    files = {"workflow": ("flow.yaml", text.encode())}
    return str(good(http.post("/runs/yaml", files=files, data={"flow_name": "main", "tag": tag}))["run_id"])


def test_a_run_completes(gate: httpx.Client, other: httpx.Client, tag: str) -> None:
    """With its tasks, records and params, as both gateways tell."""
    run_id = submit(gate, "hello", tag, name="Ada")
    for each in (gate, other):
        found = ended(each, run_id)
        assert (found["status"], found["error"], found["params"]) == ("COMPLETED", None, {"name": "Ada"})
        assert found["tasks"] == {"greet": "SUCCEEDED", "count": "SUCCEEDED"}
        assert found["task_records"]["count"]["output"] == 11


def test_a_flow_that_raises_fails_with_a_dead_letter(house: House, gate: httpx.Client, tag: str) -> None:
    """Our gateway shows the letter of either worker."""
    run_id = submit(gate, "fail", tag)
    found = ended(gate, run_id)
    assert (found["status"], found["tasks"]) == ("FAILED", {"fail": "FAILED"})
    assert "this flow always fails" in found["error"]
    assert letter_of(house, run_id)["reason"] == "execution_error"


def test_an_unknown_flow_fails_with_a_dead_letter(house: House, gate: httpx.Client, tag: str) -> None:
    """Under the reason of the contract."""
    run_id = submit(gate, "nobody-has-this", tag)
    assert ended(gate, run_id)["error"].startswith("flow_not_found: ")
    assert letter_of(house, run_id)["reason"] == "flow_not_found"


def letter_of(house: House, run_id: str) -> dict[str, Any]:
    """The dead letter of a run."""
    found = until(lambda: good(house.ours.get("/dlq", params={"run_id": run_id}))["items"], bool)
    letter: dict[str, Any] = found[0]
    return letter


def test_a_run_brings_its_own_flow(gate: httpx.Client, tag: str) -> None:
    """The text travels in the job, its digest in the snapshot."""
    found = ended(gate, submit_yaml(gate, GREETING, tag))
    assert (found["status"], found["error"]) == ("COMPLETED", None)
    assert found["task_records"]["upper"]["output"] == "Hello, World"
    assert found["workflow_yaml_bytes"] == len(GREETING)


def test_a_run_is_cancelled_through_the_other_gateway(gate: httpx.Client, other: httpx.Client, tag: str) -> None:
    """The worker stops it, and it stays CANCELLED for both."""
    run_id = submit(gate, "wait", tag)
    cancelled(other, run_id)
    found = ended(gate, run_id)
    assert found["status"] == "CANCELLED"
    assert found["cancel_requested_at"] is not None


def test_a_run_is_listed_and_watched_through_the_other_gateway(
    gate: httpx.Client, other: httpx.Client, tag: str
) -> None:
    """As soon as it was accepted."""
    run_id = submit(gate, "hello", tag)
    until(lambda: [item["run_id"] for item in good(steady(lambda: other.get("/runs")))], lambda found: run_id in found)
    [events] = library(url_of(other), call("watch_run", run_id, timeout_sec=60))
    assert events[-1]["data"]["snapshot"]["status"] == "COMPLETED"
    assert {event["event"] for event in events} <= {"snapshot", "heartbeat"}


def test_a_run_that_nobody_takes_is_cancelled_before_it_begins(gate: httpx.Client, other: httpx.Client) -> None:
    """Both say CANCELLING until a worker of ours comes for the tag."""
    run_id = submit(gate, "hello", "nobody")
    assert good(other.post(f"/runs/{run_id}/cancel"))["status"] == "CANCELLING"
    assert status(gate, run_id) == "CANCELLING"


def test_a_worker_that_one_gateway_hides_the_other_does_not_list(gate: httpx.Client, other: httpx.Client) -> None:
    """Whichever wrote it; the worker's next heartbeat does not undo it."""
    for worker_id in ("our-worker", "their-worker"):
        for hidden in (True, False):
            good(gate.patch(f"/workers/{worker_id}", json={"hidden": hidden}))
            wait_listed(other, worker_id, not hidden)


def wait_listed(http: httpx.Client, worker_id: str, wanted: bool) -> None:
    """Wait until it shows the worker, or no longer does."""
    until(lambda: worker_id in listed(http), lambda found: found is wanted)


def listed(http: httpx.Client) -> list[str]:
    """The workers that it shows."""
    return [each["worker_id"] for each in good(steady(lambda: http.get("/workers")))]


@pytest.mark.parametrize("kind", ["ours", "theirs"])
def test_wheels_reach_every_worker(house: House, gate: httpx.Client, kind: str, tmp_path: Path) -> None:
    """Offered through either gateway, installed by either worker, listed and downloaded by the other gateway."""
    package = f"pyoco_for_{kind}_by_{'ours' if gate is house.ours else 'theirs'}"
    tag = package.replace("_", "-")
    name, data = wheel_name(package, "1.0"), wheel_of(package, "1.0")
    offered = good(gate.post("/wheels", files={"wheel": (name, data)}, data={"tags": tag}))
    assert offered["tags"] == [tag]
    for each in house.both:
        assert each.get(f"/wheels/{name}").content == data
        assert good(each.get("/wheels/history", params={"wheel_name": name}))[0]["action"] == "upload"
    with wheel_worker(house, kind, tag, tmp_path):
        run_id = submit_yaml(gate, ANSWER.replace("PACKAGE", package), tag)
        found = ended(gate, run_id)
        assert (found["status"], found["error"]) == ("COMPLETED", None)
        assert found["task_records"]["answer"]["output"] == "1.0"
        for each in house.both:
            wait_installed(each, tag, name)
    assert good(house.ours.delete(f"/wheels/{name}"))["deleted"] is True


def wait_installed(http: httpx.Client, worker_id: str, name: str) -> None:
    """Wait until the worker says that it has this wheel and no other."""
    until(lambda: installed(http, worker_id), lambda found: found == [name])


def installed(http: httpx.Client, worker_id: str) -> list[str]:
    """The wheels that a worker says it has."""
    records = {each["worker_id"]: each for each in good(steady(lambda: http.get("/workers")))}
    return [each["wheel_name"] for each in records[worker_id]["wheel_sync"]["installed_wheels"]]


def wheel_worker(house: House, kind: str, tag: str, place: Path) -> Any:
    """A worker that installs wheels; the peer's would install them into its own environment, which others use."""
    if kind == "ours":
        args = ("--tags", tag, "--flow-resolver", f"{FLOWS}:resolve")
        return worker(place, house.nats_url, *args, name=tag, PYOCO_WHEEL_SYNC_ENABLED="1")
    target = str(place / "installed")
    Path(target).mkdir()  # a folder that is not there when Python starts is not looked into later
    env = {"PYOCO_WHEEL_SYNC_ENABLED": "1", "PIP_TARGET": target, "PYTHONPATH": target}
    return peer_worker(place, house.nats_url, name=tag, tags=tag, **env)


def test_the_queue_carries_the_same_job(house: House) -> None:
    """A worker of either kind reads the same from the job of either gateway: their runs tell the same."""
    found = [ended(house.ours, submit(gate, "hello", "theirs", name="Eve")) for gate in house.both]
    kept = [{key: run[key] for key in ("flow_name", "tag", "tags", "params", "tasks", "status")} for run in found]
    assert json.dumps(kept[0]) == json.dumps(kept[1])
