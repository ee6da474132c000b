"""The published PyocoHttpClient, every method: our gateway gives it what its own gateway gives it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.compat.comparison import still, uncovered
from tests.compat.house import GREETING, House, ended, settle, url_of
from tests.compat.peer import Call, call, library
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"
WHEEL = wheel_name("pyoco_library", "1.0")
DATA = "base64:" + base64.b64encode(wheel_of("pyoco_library", "1.0")).decode()

SUBMITS = [
    call("submit_run", "hello", {"name": "Ada"}, tag="ours"),
    call("submit_run", "fail", tag="ours", tags=["x", "y"]),
    call("submit_run", "wait", tag="ours"),
    call("submit_run_yaml", GREETING, flow_name="greeting", tag="ours"),
    call("submit_run", "hello", tag="nobody"),
]


def follow_ups(done: str, failed: str, waiting: str, from_yaml: str, held: str) -> list[Call]:
    """What can be asked about these runs, and about all else."""
    return [
        call("watch_run", done, include_records=True),
        call("watch_run", failed, since=0.0, timeout_sec=60),
        call("watch_run", from_yaml),
        call("watch_run", held, timeout_sec=1),
        call("get_run", done),
        call("get_run_with_records", done),
        call("get_run_with_records", failed),
        call("get_tasks", from_yaml),
        call("cancel_run", waiting, wait=True, timeout_sec=30),
        call("cancel_run", waiting),
        call("cancel_run", done),
        call("cancel_run", held),
        call("cancel_run", held, wait=True, timeout_sec=1),
        call("list_runs", tag="nowhere"),
        call("list_runs", flow="greeting", tag="ours", limit=1),
        call("list_runs", status="FAILED", flow="fail", tag="ours", full=True, limit=1),
        call("list_runs_vnext", flow="greeting", tag="ours", limit=1),
        call("list_runs_vnext", status="CANCELLED", tag="ours", updated_after=1.0, limit=1),
        call("list_runs_vnext", flow="fail", tag="ours", full=True, updated_after=1.0, limit=1),
        call("list_runs_vnext", workflow_yaml_sha256="0" * 64),
        call("list_runs_vnext", cursor="nonsense"),
    ]


OTHERS = [
    call("get_run", UNKNOWN),
    call("get_run_with_records", UNKNOWN),
    call("get_tasks", UNKNOWN),
    call("cancel_run", UNKNOWN),
    call("watch_run", UNKNOWN),
    call("submit_run", ""),
    call("submit_run", "hello", tag="a.b"),
    call("submit_run_yaml", "nonsense: 1", flow_name="greeting", tag="ours"),
    call("submit_run_yaml", "#" * 2001, flow_name="greeting", tag="ours"),
    call("list_runs", limit=1000),
    call("patch_worker_hidden", "our-worker", hidden=True),
    call("get_workers", include_hidden=False),
    call("get_workers", scope="all", include_hidden=True, limit=10),
    call("get_workers", state="RUNNING"),
    call("get_workers", scope="nonsense"),
    call("patch_worker_hidden", "our-worker", hidden=False),
    call("patch_worker_hidden", "nobody", hidden=True),
    call("upload_wheel", filename=WHEEL, data=DATA, tags=["nobody", "else"]),
    call("upload_wheel", filename=WHEEL, data=DATA, replace=False),
    call("upload_wheel", filename="nonsense", data=DATA),
    call("list_wheels"),
    call("list_wheel_history", limit=1, wheel_name=WHEEL, action="upload"),
    call("delete_wheel", WHEEL),
    call("delete_wheel", WHEEL),
    call("list_wheel_history", limit=1, wheel_name=WHEEL, action="delete"),
    call("list_wheel_history", action="nonsense"),
]


def test_every_method_of_it_is_tried(house: House) -> None:
    """A method that is not called in this file is not proven."""
    [methods] = library(url_of(house.ours), call("methods"))
    tried = {each.method for each in [*SUBMITS, *follow_ups(*"12345"), *OTHERS]}
    assert set(methods) == tried | {"close", "get_metrics"}


def test_runs_are_submitted_watched_read_listed_and_cancelled(house: House) -> None:
    """The same calls through both gateways, with our worker behind them, tell the same story."""
    mine, other = (story(url_of(gate), house) for gate in house.both)
    for number, (ours, theirs) in enumerate(zip(mine, other, strict=True)):
        assert list(uncovered(ours, theirs, f"answer {number}")) == []


def story(url: str, house: House) -> list[Any]:
    """All answers, without what is new in every run; a stream is told by how it begins and ends."""
    submitted = library(url, *SUBMITS)
    run_ids = [each["run_id"] for each in submitted]
    for run_id in (run_ids[0], run_ids[1], run_ids[3]):
        ended(house.ours, run_id)  # else the streams would tell of more or fewer steps
    return [still(each) for each in [*submitted, *library(url, *follow_ups(*run_ids))]]


@pytest.mark.parametrize("each", OTHERS, ids=lambda each: f"{each.method}{each.args}"[:60])
def test_other_calls_are_answered_alike(answers: dict[int, tuple[Any, Any]], each: Call) -> None:
    """Workers, wheels, and what is wrong."""
    ours, theirs = answers[OTHERS.index(each)]
    assert list(uncovered(still(ours), still(theirs))) == []


@pytest.fixture(scope="module")
def answers(house: House) -> dict[int, tuple[Any, Any]]:
    """What both gateways answered to all of them."""
    settle(house)
    mine, other = (library(url_of(gate), *OTHERS) for gate in house.both)
    return dict(enumerate(zip(mine, other, strict=True)))


def test_metrics_are_read(house: House) -> None:
    """The page is text, with the figures of the contract."""
    for gate in house.both:
        [page] = library(url_of(gate), call("get_metrics"))
        for name in (
            "pyoco_runs_total",
            "pyoco_runs_today_total",
            "pyoco_workers_alive_total",
            "pyoco_dlq_messages_total",
        ):
            assert f"\n{name}" in page


def test_a_gateway_that_is_not_there_is_an_error_of_the_connection() -> None:
    """As the client's users know it."""
    [found] = library("http://127.0.0.1:9", call("list_runs"))
    assert found == {"error": "ConnectError", "status": None}
