"""What all tests of this folder share: two gateways on one NATS, and how to talk to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from attrs import frozen

from tests.integration.gateway_client import TERMINAL, good, until

LIMITS = {"PYOCO_WHEEL_MAX_BYTES": "50000", "PYOCO_WORKFLOW_YAML_MAX_BYTES": "2000"}
"""Small, so that a test can go over them."""

GREETING = """
version: 1
flow:
  defaults: {text: "hello, world"}
  graph: upper
tasks:
  upper: {callable: "string:capwords", inputs: {s: "$ctx.params.text"}}
"""


@frozen
class House:
    """A gateway of ours and one of the peer; `our-worker` takes the tag ours, `their-worker` the tag theirs."""

    place: Path
    nats_url: str
    ours: httpx.Client
    theirs: httpx.Client

    @property
    def both(self) -> tuple[httpx.Client, httpx.Client]:
        """Ours first."""
        return self.ours, self.theirs


def steady(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """Ask until the peer's gateway can count: it answers 503 NoKeysError when a key is written while it lists them."""
    return until(ask, lambda answer: answer.status_code != 503 or "NoKeysError" not in answer.text)


def url_of(http: httpx.Client) -> str:
    """Where it is served."""
    return str(http.base_url).rstrip("/")


def submit(http: httpx.Client, flow_name: str, tag: str, **params: Any) -> str:
    """POST /runs; returns the run's id."""
    return str(good(http.post("/runs", json={"flow_name": flow_name, "tag": tag, "params": params}))["run_id"])


def status(http: httpx.Client, run_id: str) -> str:
    """Of one run."""
    return str(good(http.get(f"/runs/{run_id}"))["status"])


def ended(http: httpx.Client, run_id: str) -> dict[str, Any]:
    """The run, with its records, when it has ended."""
    until(lambda: status(http, run_id), lambda found: found in TERMINAL)
    found: dict[str, Any] = good(http.get(f"/runs/{run_id}", params={"include": "records"}))
    return found


def settle(house: House) -> None:
    """Wait until the worker records tell of the latest runs: ours writes its record a moment after a run."""
    last = {tag: submit(house.ours, "hello", tag) for tag in ("ours", "theirs")}
    for run_id in last.values():
        ended(house.ours, run_id)

    def look() -> set[str | None]:
        return {each["last_run_id"] for each in good(house.ours.get("/workers")) if each["state"] == "IDLE"}

    until(look, lambda found: found >= set(last.values()))


def cancelled(http: httpx.Client, run_id: str) -> str:
    """Cancel a run once it runs, again if the request is lost: the published worker overwrites it now and then."""

    def look() -> str:
        found = good(http.get(f"/runs/{run_id}"))
        if found["status"] == "RUNNING" and "RUNNING" in found["tasks"].values():
            good(http.post(f"/runs/{run_id}/cancel"))
        return str(found["status"])

    assert until(look, lambda found: found in TERMINAL) == "CANCELLED"
    return run_id
