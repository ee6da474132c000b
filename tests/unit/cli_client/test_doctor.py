"""The doctor: what is seen, and what is said about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyoco_runtime.cli.client import diagnosis, doctor
from pyoco_runtime.cli.client.finding import Finding, Level
from pyoco_runtime.client import NotConnected
from pyoco_runtime.messages import text
from tests.unit.cli_client.support import refused, run, session

NOW = 1000.0
WORKER = {"worker_id": "w", "state": "IDLE", "tags": ["default"], "flows": ["hello"], "last_seen_at": NOW}
ACTOR = {"path": "runtime", "name": "runtime", "state": "running", "children": []}
PROCESS = {"process": "p", "version": "0.1.0", "tree": ACTOR}
METRICS = 'pyoco_dlq_messages_total 0\npyoco_queue_waiting{tag="default"} 2\n'


def levels(*found: Finding) -> list[tuple[str, str]]:
    return [(each.subject, each.level.value) for each in found]


def healthy(**instead: Any) -> dict[str, Any]:
    return {
        "health": {"status": "ok"},
        "ready": {"status": "ready", "missing": []},
        "list_runs": [],
        "get_workers": [WORKER],
        "list_wheels": [],
        "list_wheel_history": [],
        "get_metrics": METRICS,
        "actors": [PROCESS],
        "openapi": {"info": {"title": "pyoco-runtime", "version": "0.1.0"}},
        **instead,
    }


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_skew", lambda server: 0.1)
    monkeypatch.setattr("pyoco_runtime.cli.client.doctor.time.time", lambda: NOW)


def diagnosed(**instead: Any) -> list[tuple[str, str]]:
    return levels(*doctor.findings(session(**healthy(**instead))))


def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, and a line for each thing."""
    assert {level for _, level in diagnosed()} == {"ok"}
    assert run(session(**healthy()), "doctor") == 0
    assert "problem" not in capsys.readouterr().out


def test_a_gateway_that_is_away_is_all_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1, with the address and how to start one."""
    assert run(session(health=NotConnected("refused")), "doctor") == 1
    said = capsys.readouterr().out
    assert "http://gateway:8000" in said
    assert "pyoco-server up" in said


@pytest.mark.parametrize(
    ("instead", "expected"),
    [
        ({"ready": {"status": "not ready", "missing": ["link is down"]}}, ("nats", "problem")),
        ({"list_wheels": refused(503, "nats unavailable", 3)}, ("resources", "problem")),
        ({"get_workers": []}, ("workers", "problem")),
        ({"get_workers": [WORKER, {"worker_id": "v", "state": "DISCONNECTED"}]}, ("workers", "warning")),
        ({"get_workers": [{**WORKER, "flows": []}]}, ("flows", "warning")),
        ({"get_workers": [{**WORKER, "last_seen_at": NOW + 9}]}, ("clock", "warning")),
        ({"get_metrics": 'pyoco_queue_waiting{tag="gpu"} 3\n'}, ("queue", "problem")),
        ({"get_metrics": "pyoco_dlq_messages_total 3\n"}, ("dead letters", "warning")),
        ({"actors": [{**PROCESS, "tree": {**ACTOR, "state": "down"}}]}, ("actors", "problem")),
        ({"actors": refused(403, "admin key required", 39)}, ("actors", "warning")),
        ({"actors": [PROCESS, {**PROCESS, "version": "0.2.0"}]}, ("versions", "warning")),
        ({"get_workers": [{k: v for k, v in WORKER.items() if k != "flows"}]}, ("versions", "warning")),
        ({"list_runs": refused(401, "api key required", 14)}, ("api key", "problem")),
    ],
)
def test_what_is_wrong_is_found(instead: dict[str, Any], expected: tuple[str, str]) -> None:
    """Each by itself."""
    assert expected in diagnosed(**instead)


def test_the_published_gateway_is_no_problem() -> None:
    """It has neither /ready nor /actors."""
    missing = refused(404, "Not Found", path="/ready")
    found = diagnosed(ready=missing, actors=missing)
    assert "problem" not in {level for _, level in found}


@pytest.mark.parametrize(("skew", "level"), [(None, "warning"), (1.0, "ok"), (-5.0, "warning"), (60.0, "problem")])
def test_the_clock(skew: float | None, level: str) -> None:
    """Less than two seconds cannot be told."""
    assert diagnosis.on_clock(skew).level == Level(level)


def test_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    """One list; a finding says what to do, or nothing."""
    assert run(session(**healthy(get_workers=[])), "doctor", "--output", "json") == 1
    found = json.loads(capsys.readouterr().out)
    worst = next(each for each in found if each["level"] == "problem")
    assert (worst["subject"], worst["do"]) == ("workers", text("MSG-PYOCO-0183", "en"))
