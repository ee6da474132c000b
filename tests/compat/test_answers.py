"""The same request to our gateway and to the published one, on one NATS: what it answers, ours answers too."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.compat.comparison import differences, uncovered
from tests.compat.house import GREETING, House, cancelled, ended, settle, submit
from tests.compat.peer import ROOT
from tests.compat.requests import READS, WRITES, Case
from tests.integration.gateway_client import good
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of

PAGE = ROOT / "docs" / "reference" / "compatibility.md"


@pytest.fixture(scope="module")
def made(house: House) -> dict[str, str]:
    """Runs of every kind, by both workers, and a wheel; their ids by the names that the requests use."""
    found = runs_of_every_kind(house)
    settle(house)
    found["wheel"] = wheel_name("pyoco_compat", "1.0")
    for name in ("pyoco_gone-1.0-py3-none-any.whl", found["wheel"]):
        wheel = (name, wheel_of("pyoco_compat", "1.0"))
        good(house.ours.post("/wheels", files={"wheel": wheel}, data={"tags": "nobody"}))
    good(house.ours.delete("/wheels/pyoco_gone-1.0-py3-none-any.whl"))
    for name, gate in (("our_cursor", house.ours), ("cursor", house.theirs)):
        found[name] = good(gate.get("/runs", params={"updated_after": 0, "limit": 2}))["next_cursor"]
    return found


def runs_of_every_kind(house: House) -> dict[str, str]:
    """All but one have ended."""
    ours, theirs = house.both
    found = {
        "done": submit(ours, "hello", "ours", name="Ada"),
        "failed": submit(ours, "fail", "ours"),
        "unheard": submit(ours, "nobody-has-this", "ours"),
        "their_done": submit(theirs, "hello", "theirs", name="Bob"),
        "their_failed": submit(theirs, "fail", "theirs"),
    }
    form: dict[str, Any] = {"files": {"workflow": ("flow.yaml", GREETING.encode())}}
    found["yaml"] = good(ours.post("/runs/yaml", **form, data={"flow_name": "main", "tag": "ours"}))["run_id"]
    snapshots = {name: ended(ours, run_id) for name, run_id in found.items()}
    found["sha256"] = snapshots["yaml"]["workflow_yaml_sha256"]
    found["cancelled"] = cancelled(ours, submit(ours, "wait", "ours"))
    found["their_cancelled"] = cancelled(theirs, submit(theirs, "wait", "theirs"))
    found["waiting"] = submit(ours, "hello", "nobody")
    return found


@pytest.mark.parametrize("case", READS, ids=lambda case: case.name)
def test_both_read_the_same(house: House, made: dict[str, str], case: Case) -> None:
    """Of one state both tell the same; ours may tell more."""
    compare(case, *(case.ask(gate, made) for gate in house.both))


@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.name)
def test_both_take_and_refuse_the_same(house: House, made: dict[str, str], case: Case) -> None:
    """What one accepts the other accepts and stores alike; what one refuses the other refuses."""
    ours, theirs = (case.ask(gate, made) for gate in house.both)
    compare(case, ours, theirs)
    if ours.status_code == theirs.status_code == 200:
        mine, other = (stored(house.theirs, answer.json()["run_id"]) for answer in (ours, theirs))
        assert list(uncovered(mine, other, moving=frozenset({"updated_at", "heartbeat_at"}))) == []


def compare(case: Case, ours: httpx.Response, theirs: httpx.Response) -> None:
    """Ours covers theirs, or the page says why not; and what the page says is still so."""
    found = differences(ours, theirs, moving="/workers" in case.path)
    if case.differs is None:
        assert found == []
    else:
        assert found != [], f"they do not differ any more: take {case.differs} out"
        assert case.differs in listed()


def stored(gate: httpx.Client, run_id: str) -> dict[str, Any]:
    """A run as everybody sees it."""
    found: dict[str, Any] = good(gate.get(f"/runs/{run_id}", params={"include": "all"}))
    return found


def listed() -> set[str]:
    """The rows of the page."""
    return set(re.findall(r"(?m)^\| `([a-z-]+)` \|", PAGE.read_text()))
