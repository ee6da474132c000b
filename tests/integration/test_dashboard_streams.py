"""What the dashboard hears from a real gateway: crashes within a second, graphs and reasons of runs, and the page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from pyoco_runtime.actors.console import Console
from pyoco_runtime.actors.link import Link
from pyoco_runtime.core import ActorSpec, Backoff, Context, Supervisor, SupervisorSpec, World
from pyoco_runtime.desk import Desk
from pyoco_runtime.jetstream.console import TREE, NatsConsoleHost
from pyoco_runtime.jetstream.house import house
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import gateway, good
from tests.integration.programs import program, wait_ready
from tests.names import NAMES

FLOWS = str(Path(__file__).parents[2] / "examples" / "hello_flow.py") + ":resolve"
NAME = "crasher"
YAML = """
version: 1
flow:
  graph: |
    a >> switch(on={{mode}}){ x: repeat(count=2){ b }; default: c } >> d
  defaults: {mode: x}
tasks:
  a: {callable: "time:time"}
  b: {callable: "time:time"}
  c: {callable: "time:time"}
  d: {callable: "time:time"}
"""


class Crasher:
    """Raises when it is told to."""

    def __init__(self, now: list[anyio.Event]) -> None:
        self._now = now

    async def run(self, context: Context) -> None:
        """Wait for the word."""
        context.ready()
        await self._now[-1].wait()
        self._now.append(anyio.Event())
        raise ValueError("as was asked")


class BrittleConsole(Console):
    """A console that raises when it is told to."""

    async def run(self, context: Context) -> None:
        """As its parent, until the word comes."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._crash)
            await super().run(context)

    async def _crash(self) -> None:
        await WORDS["console"][-1].wait()
        WORDS["console"].append(anyio.Event())
        raise ValueError("as was asked")


WORDS: dict[str, list[anyio.Event]] = {}


def tree(url: str) -> Supervisor:
    """A process with a console and two actors that crash on request."""
    world = World()
    link = NatsLink(lambda: (url,), "test", NAMES)
    desk = Desk(NAME, "worker", "0", link)
    host = NatsConsoleHost(link, NAME, "0.0.0")
    at_once = Backoff(initial_sec=0.01, max_sec=0.01)
    spec = SupervisorSpec(
        "runtime",
        (
            ActorSpec("link", lambda: Link(link)),
            ActorSpec("crash", lambda: Crasher(WORDS["crash"]), backoff=at_once, shutdown_sec=0),
            ActorSpec("console", lambda: BrittleConsole(desk, host, link, world.feed), backoff=at_once, shutdown_sec=0),
        ),
    )
    supervisor = Supervisor(spec, world=world)
    desk.attach(supervisor)
    return supervisor


async def events(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    """What a stream says."""
    name = ""
    async for line in response.aiter_lines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


def crashed(report: dict[str, Any], actor: str) -> bool:
    """Whether the process tells of a crash of this actor."""
    (found,) = [each for each in report["tree"]["children"] if each["name"] == actor]
    return found["last_crash"] is not None


@pytest.mark.parametrize("actor", ["crash", "console"])
def test_a_crash_is_told_within_a_second(actor: str, tmp_path: Path) -> None:
    """Of any actor in any process, also of the one that tells it."""

    async def main(nats_url: str, url: str) -> float:
        WORDS.update({name: [anyio.Event()] for name in ("crash", "console")})
        supervisor = tree(nats_url)
        http = httpx.AsyncClient(base_url=url, timeout=10)
        async with supervisor, http, http.stream("GET", "/actors/watch") as response:
            coming = events(response)
            name, data = await anext(coming)
            assert name == "actors"
            known = {report["process"] for report in data["items"]}
            while NAME not in known:
                known.add((await anext(coming))[1].get("process"))
            began = anyio.current_time()
            WORDS[actor][-1].set()
            async for name, data in coming:
                if name == "process" and data["process"] == NAME and crashed(data, actor):
                    break
            return anyio.current_time() - began

    with nats_server(tmp_path / "store") as nats, gateway(tmp_path, nats.url) as gate:
        gate.until_ready()
        took_sec = anyio.run(main, nats.url, gate.url)
        assert took_sec < 1.0


def test_a_look_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    """A browser that goes away in the middle of one must not cost anything for ever."""

    async def main(url: str) -> None:
        async with house((url,)) as found, house((url,)) as deaf:
            await deaf._client.subscribe(TREE)
            await deaf._client.flush()
            before = len(found._client._subs)
            with anyio.move_on_after(0.05) as scope:
                await found.reports(quiet_sec=10)
            assert scope.cancelled_caught
            assert len(found._client._subs) == before
            assert await found.reports(quiet_sec=0.05) == []

    with nats_server(tmp_path / "store") as nats:
        anyio.run(main, nats.url)


def test_a_run_shows_its_graph_and_what_it_waits_for(tmp_path: Path) -> None:
    """Through a real worker and its child process; a flow.yaml with a switch and a loop."""
    with (
        program(
            tmp_path, "--role", "all", "--port", "0", "--flow-resolver", FLOWS, PYOCO_NATS_CLIENT_PORT="0"
        ) as runtime,
        httpx.Client(base_url=runtime.url(), timeout=30) as http,
    ):
        wait_ready(str(http.base_url))
        nobodys = http.post("/runs", json={"flow_name": "hello", "tag": "gpu"}).json()["run_id"]
        assert http.get(f"/runs/{nobodys}").json()["waiting"] == {"code": "no_worker", "tag": "gpu"}
        form = {"flow_name": (None, "y"), "tag": (None, "default"), "workflow": ("flow.yaml", YAML)}
        run_id = good(http.post("/runs/yaml", files=form))["run_id"]
        with http.stream("GET", f"/runs/{run_id}/watch") as news:
            assert any('"status":"COMPLETED"' in line or '"status":"FAILED"' in line for line in news.iter_lines())
        found = http.get(f"/runs/{run_id}").json()
        assert (found["waiting"], found["submitted_by"], len(found["workflow_yaml_sha256"])) == (None, None, 64)
        assert [node["id"] for node in found["graph"]["nodes"]] == ["a", "switch:1", "loop:1", "b", "c", "d"]
        assert ["b", "d"] in found["graph"]["edges"]
        slow = http.post("/runs", json={"flow_name": "slow", "params": {"seconds": 30}}).json()["run_id"]
        with http.stream("GET", f"/runs/{slow}/watch") as news:
            assert any('"code":"task","task":"wait"' in line for line in news.iter_lines())
        assert http.post(f"/runs/{slow}/cancel").status_code == 200
        with http.stream("GET", f"/runs/{slow}/watch") as news:
            assert any('"status":"CANCELLED"' in line for line in news.iter_lines())
        stats = http.get("/stats").json()
        assert sum(stats["ended"]["CANCELLED"]) == 1
        page = http.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert http.get("/static/config.json").json()["version"] != ""
