"""The gateway as people use it: the real program on a real nats-server, over HTTP, with a real worker."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import frozen

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import (
    PEER,
    Event,
    Gateway,
    client_of,
    gateway,
    good,
    load,
    make_keys,
    new_peer_key,
    peer,
    revoke_key,
    together,
    until,
    watching,
)
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of
from tests.integration.worker_client import worker

pytestmark = pytest.mark.xdist_group("gateway")  # the processes of the house serve all tests of this file

GREETING = """
version: 1
flow:
  defaults: {text: "hello, world"}
  graph: upper
tasks:
  upper: {callable: "string:capwords", inputs: {s: "$ctx.params.text"}}
"""
AUTH = {"PYOCO_HTTP_AUTH_MODE": "api_key"}
_tags = (f"t{number}" for number in itertools.count())


@frozen
class House:
    """Two gateways and a worker, which takes the tag default, on one NATS."""

    place: Path
    nats_url: str
    one: Gateway
    two: Gateway


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    place = tmp_path_factory.mktemp("house")
    with (
        nats_server(place / "store") as nats,
        worker(place, nats.url),
        gateway(place, nats.url, name="g1") as one,
        gateway(place, nats.url, name="g2") as two,
    ):
        until(lambda: good(one.http.get("/workers")), lambda found: len(found) == 1)
        yield House(place, nats.url, one, two)


@pytest.fixture
def tag() -> str:
    """A tag of this test alone; nobody works on it."""
    return next(_tags)


def more(calls: Sequence[object], number: int) -> None:
    """Wait until there have been so many more."""
    end = len(calls) + number
    until(lambda: len(calls), lambda found: found >= end)


def is_completed(event: Event) -> bool:
    return event.status == "COMPLETED"


# -- the way of a run -------------------------------------------------------------------------------------------------


def test_a_run_is_submitted_executed_and_read(house: House) -> None:
    """From POST /runs to its result, its tasks and its line in the list; the watcher hears of the end."""
    run_id = house.one.submit("hello", name="Ada")
    with watching(house.one.http, f"/runs/{run_id}/watch") as stream:
        stream.wait(is_completed)
    found = good(house.one.http.get(f"/runs/{run_id}", params={"include": "records"}))
    assert (found["status"], found["worker_id"], found["worker_alive"]) == ("COMPLETED", "w1", True)
    assert found["task_records"]["greet"]["output"] == "Hello, Ada!"
    assert good(house.one.http.get(f"/runs/{run_id}/tasks"))["tasks"] == {"greet": "SUCCEEDED", "count": "SUCCEEDED"}
    newest = good(house.one.http.get("/runs", params={"flow": "hello", "status": "COMPLETED", "limit": 1}))
    assert [item["run_id"] for item in newest] == [run_id]
    assert 'pyoco_runs_total{status="COMPLETED"}' in house.one.http.get("/metrics").text


def test_a_dead_letter_is_replayed_as_a_new_run(house: House) -> None:
    """A run that failed has a letter; the new run names its origin, and the letter can be dropped."""
    run_id = house.one.submit("fail")
    letters = until(
        lambda: good(house.one.http.get("/dlq", params={"run_id": run_id}))["items"], lambda found: bool(found)
    )
    seq = letters[0]["seq"]
    again = good(house.two.http.post(f"/dlq/{seq}/replay"))["run_id"]
    with watching(house.one.http, f"/runs/{again}/watch") as stream:
        ended = stream.wait(lambda event: event.is_terminal)
    assert (ended.status, ended.data["snapshot"]["replay_of"]) == ("FAILED", run_id)
    assert good(house.one.http.delete(f"/dlq/{seq}")) == {"seq": seq, "deleted": True}
    assert house.two.http.get(f"/dlq/{seq}").status_code == 404


@pytest.mark.skipif(not PEER.exists(), reason="the published client is not installed: make .venv-peers/.ready")
def test_the_published_client_works(house: House, tmp_path: Path) -> None:
    """pyoco-client of pyoco-server 0.5.1, unchanged: submit, watch, get, list, workers, flow.yaml, cancel, wheels."""

    def client(*args: str) -> Any:
        return json.loads(peer(house.one.url, *args, cwd=tmp_path))

    run_id = client("submit", "--flow-name", "hello", "--param", "name=Ada")["run_id"]
    watched = peer(house.one.url, "watch", run_id, "--until-terminal", "--output", "status", cwd=tmp_path)
    assert watched.splitlines()[-1].split("\t")[1:] == ["snapshot", "COMPLETED", run_id]
    assert client("get", run_id, "--records")["task_records"]["count"]["output"] == 11
    assert client("list", "--flow", "hello", "--limit", "1")[0]["run_id"] == run_id
    assert client("workers")[0]["worker_id"] == "w1"
    (tmp_path / "flow.yaml").write_text(GREETING)
    yaml_run = client("submit-yaml", "--workflow-file", "flow.yaml", "--flow-name", "greeting", "--tag", "default")
    until(lambda: house.one.get(yaml_run["run_id"])["status"], lambda status: status == "COMPLETED")
    held = client("submit", "--flow-name", "gate", "--params", json.dumps({"release": str(tmp_path / "never")}))
    assert client("cancel", "--run-id", held["run_id"], "--wait")["status"] == "CANCELLED"
    wheel = tmp_path / wheel_name("pyoco_peer", "1.0")
    wheel.write_bytes(wheel_of("pyoco_peer", "1.0"))
    assert client("wheel-upload", "--wheel-file", str(wheel), "--preflight", "off")["name"] == wheel.name
    assert wheel.name in [each["name"] for each in client("wheels")]
    assert client("wheel-delete", "--name", wheel.name)["deleted"] is True


# -- two gateways -----------------------------------------------------------------------------------------------------


def test_what_one_gateway_takes_in_the_other_lists_and_watches(house: House, tag: str) -> None:
    """They share nothing but NATS."""
    with watching(house.two.http, f"/runs/watch?tag={tag}") as everything:
        run_id = house.one.submit("hello", tag=tag)
        assert everything.wait_name("run").data["run_id"] == run_id
        assert house.two.listed(tag=tag) == {run_id: "PENDING"}
        with watching(house.two.http, f"/runs/{run_id}/watch") as stream:
            good(house.one.http.post(f"/runs/{run_id}/cancel", json={"reason": "enough"}))
            assert stream.wait(lambda event: event.status == "CANCELLING").data["run_id"] == run_id


def test_one_idempotency_key_is_one_run_however_many_ask(house: House, tag: str) -> None:
    """A hundred posts at the same time, over both gateways; another request with the same key is refused."""
    key = str(uuid.uuid4())
    found = together(100, lambda n: (house.one, house.two)[n % 2].submit("hello", tag=tag, key=key, x=1))
    assert len(set(found)) == 1
    until(lambda: house.two.listed(tag=tag), lambda listed: bool(listed))
    for each in (house.one, house.two):
        assert list(each.listed(tag=tag)) == [found[0]]
    other = house.two.http.post(
        "/runs", json={"flow_name": "hello", "tag": tag, "params": {"x": 2}}, headers={"Idempotency-Key": key}
    )
    assert (other.status_code, other.json()["err_id"]) == (409, "ERR-PYOCO-0038")


# -- lists under way --------------------------------------------------------------------------------------------------


def test_one_idempotency_key_is_one_batch_however_many_ask(house: House, tag: str) -> None:
    """At both gateways at the same time; another batch with the key is refused."""
    key = f"batch-{tag}"
    body = {"runs": [{"flow_name": "hello", "tag": tag, "params": {"x": n}} for n in range(20)]}
    gateways = (house.one, house.two)

    def ask(number: int) -> list[str]:
        answer = gateways[number % 2].http.post("/runs/batch", json=body, headers={"Idempotency-Key": key})
        return [each["run_id"] for each in good(answer)["results"]]

    found = together(6, ask)
    assert all(each == found[0] for each in found)
    until(lambda: set(house.one.listed(tag=tag)), lambda ids: ids == set(found[0]))
    other = house.two.http.post("/runs/batch", json={"runs": body["runs"][:3]}, headers={"Idempotency-Key": key})
    assert (other.status_code, other.json()["err_id"]) == (409, "ERR-PYOCO-0038")


def test_pages_show_every_run_once_while_others_are_updated(house: House, tag: str) -> None:
    """Two thousand runs; those that are not touched are each on exactly one page, whatever happens to the rest."""
    runs = house.one.submit_many(2000, tag)
    assert len(set(runs)) == 2000
    touched, quiet = set(runs[::10]), set(runs) - set(runs[::10])
    assert set(house.one.listed(tag=tag)) == set(runs)
    seen: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        cancels = [pool.submit(house.two.http.post, f"/runs/{run_id}/cancel") for run_id in touched]
        for page in house.one.pages(limit=100, tag=tag):
            seen += [item["run_id"] for item in page]
        for each in cancels:
            good(each.result())
    assert sorted(run_id for run_id in seen if run_id in quiet) == sorted(quiet)
    until(
        lambda: {run_id for run_id, status in house.one.listed(tag=tag).items() if status == "CANCELLING"},
        lambda cancelling: cancelling == touched,
    )


def test_a_restart_of_the_run_index_is_told_and_leaves_lists_right(house: House, tag: str) -> None:
    """While it is away lists say x-pyoco-behind; afterwards they have what was submitted meanwhile."""
    submitted: list[str] = []
    said: set[str | None] = set()

    def ask(number: int) -> None:
        submitted.append(house.two.submit("hello", tag=tag))
        said.add(house.two.behind())

    with load(50, ask) as calls:
        more(calls, 10)
        for _ in range(20):  # it may be back before anybody asks
            house.one.restart("run-index", process="g2")
            if said - {None}:
                break
        more(calls, 10)
    house.two.until_ready()
    assert said - {None}, "no list said that it was behind"
    assert set(house.two.listed(tag=tag)) == set(submitted)


def test_the_end_of_a_run_reaches_its_watcher_soon(house: House) -> None:
    """From the worker's terminal write to the watcher's event, over 40 runs; the figure is printed, not judged."""
    took: list[float] = []

    def watch(number: int) -> None:
        run_id = house.two.submit("short", seconds=0.02)
        with watching(house.one.http, f"/runs/{run_id}/watch") as stream:
            ended = stream.wait(is_completed)
        took.append(ended.at - ended.data["snapshot"]["updated_at"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(watch, range(40)))
    took.sort()
    p50, p95, longest = (took[place] * 1e3 for place in (20, 37, 39))
    print(f"\nterminal event to watcher: p50 {p50:.1f} ms, p95 {p95:.1f} ms, max {longest:.1f} ms")
    assert took[37] < 2.0


# -- restarts and stops -----------------------------------------------------------------------------------------------


def test_a_restart_of_http_fails_no_request_and_ends_streams(house: House, tag: str) -> None:
    """Fifty requests a second, half of them on connections that are kept; a stream is told to connect again."""
    answered: list[str] = []

    def ask(number: int) -> None:
        if number % 2:
            answered.append(house.one.submit("hello", tag=tag))
        else:
            answer = httpx.post(f"{house.one.url}/runs", json={"flow_name": "hello", "tag": tag}, timeout=30)
            answered.append(good(answer)["run_id"])

    run_id = house.one.submit("hello", tag=tag)
    with watching(house.one.http, f"/runs/{run_id}/watch") as one, watching(house.one.http, "/runs/watch") as all_runs:
        with load(50, ask) as calls:
            for _ in range(3):
                more(calls, 15)
                house.two.restart("http", process="g1")
            more(calls, 15)
        for stream in (one, all_runs):
            assert stream.wait_over()[-1].name == "end"
    assert set(house.two.listed(tag=tag)) == {run_id, *answered}
    seen = next(event.event_id for event in reversed(all_runs.events) if event.event_id)
    with watching(house.one.http, f"/runs/watch?tag={tag}", last_event_id=seen) as resumed:
        # on a slow machine more has happened meanwhile than a stream makes up for, and it says so
        resumed.wait(lambda event: event.name == "dropped" or event.data.get("run_id") == answered[-1])


def test_sigterm_ends_streams_finishes_requests_and_exits_with_0(house: House, tmp_path: Path) -> None:
    """With an open stream and a request whose body comes slowly: both get their end, well within the grace time."""
    with gateway(tmp_path, house.nats_url, name="g3") as started:
        run_id = started.submit("hello", tag="nobody")
        body = json.dumps({"flow_name": "hello", "tag": "nobody"}).encode()
        with watching(started.http, f"/runs/{run_id}/watch") as stream, slow_post(started.url, len(body)) as slow:
            slow.sendall(body[:10])
            until(lambda: started.http.get("/health").status_code, lambda status: status == 200)
            began = time.monotonic()
            started.process.process.send_signal(signal.SIGTERM)
            assert stream.wait_over()[-1].name == "end"
            slow.sendall(body[10:])
            assert slow.makefile("rb").readline() == b"HTTP/1.1 200 \r\n"
            assert started.process.wait() == 0
        assert time.monotonic() - began < 10


def test_sigterm_does_not_wait_for_a_request_that_never_ends(house: House, tmp_path: Path) -> None:
    """It is cut after the grace time, and the exit code is 0 all the same."""
    (tmp_path / "supervisor.toml").write_text("[actors.http]\nshutdown_sec = 1.5\n")
    with gateway(tmp_path, house.nats_url, name="g4") as started, slow_post(started.url, 100) as slow:
        slow.sendall(b"{")
        until(lambda: started.http.get("/health").status_code, lambda status: status == 200)
        began = time.monotonic()
        assert started.process.terminate() == 0
        assert time.monotonic() - began < 10


# -- NATS goes and comes ----------------------------------------------------------------------------------------------

NEEDS_NATS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("POST", "/runs", {"json": {"flow_name": "hello"}}),
    ("POST", "/runs", {"json": {"flow_name": "hello"}, "headers": {"Idempotency-Key": "k"}}),
    ("POST", "/runs/batch", {"json": {"runs": [{"flow_name": "hello"}]}}),
    ("POST", "/runs/yaml", {"files": {"workflow": GREETING}, "data": {"flow_name": "greeting", "tag": "default"}}),
    ("GET", "/runs", {}),
    ("GET", "/runs?include=full", {}),
    ("GET", "/runs/watch", {}),
    ("GET", "/runs/{run}", {}),
    ("GET", "/runs/{run}/tasks", {}),
    ("GET", "/runs/{run}/watch", {}),
    ("POST", "/runs/{run}/cancel", {}),
    ("GET", "/workers", {}),
    ("PATCH", "/workers/w1", {"json": {"hidden": True}}),
    ("GET", "/metrics", {}),
    ("GET", "/wheels", {}),
    ("POST", "/wheels", {"files": {"wheel": (wheel_name("pyoco_w", "1.0"), wheel_of("pyoco_w", "1.0"))}}),
    ("GET", "/wheels/history", {}),
    ("GET", f"/wheels/{wheel_name('pyoco_w', '1.0')}", {}),
    ("DELETE", f"/wheels/{wheel_name('pyoco_w', '1.0')}", {}),
    ("GET", "/dlq", {}),
    ("GET", "/dlq/1", {}),
    ("POST", "/dlq/1/replay", {}),
    ("DELETE", "/dlq/1", {}),
    ("GET", "/actors", {}),
    ("POST", "/actors/g1/http/restart", {}),
)


def test_nats_killed_and_back(tmp_path: Path) -> None:
    """Away: 503 within a second everywhere, /health 200, /ready in words. Back: all well, open streams go on."""
    release = tmp_path / "release"
    with (
        nats_server(tmp_path / "store") as nats,
        gateway(tmp_path, nats.url) as started,
        worker(tmp_path, nats.url) as working,
    ):
        run_id = started.submit("gate", release=str(release))
        with (
            watching(started.http, f"/runs/{run_id}/watch?timeout_sec=600") as stream,
            watching(started.http, "/runs/watch") as everything,
        ):
            stream.wait(lambda event: event.status == "RUNNING")
            nats.kill()
            check_unavailable(started, run_id)
            nats.start()
            started.until_ready()
            working.wait_said("connection to NATS restored")
            release.touch()
            assert is_completed(stream.wait(lambda event: event.is_terminal))
            everything.wait(lambda event: event.name == "run" and event.data["status"] == "COMPLETED")
            again = started.submit("hello")
            everything.wait(lambda event: event.data.get("run_id") == again and event.data["status"] == "COMPLETED")
        assert set(started.listed()) == {run_id, again}, "what was refused has left nothing behind"
        check_well(started, run_id)
        assert all(lives == 0 for lives in map(started.lives, ("http", "run-index", "link", "worker-index")))


def check_unavailable(started: Gateway, run_id: str) -> None:
    """Every route says so, at once."""
    for method, path, more in NEEDS_NATS:
        began = time.monotonic()
        answer = started.http.request(method, path.format(run=run_id), **more)
        took_sec = time.monotonic() - began
        told = f"{method} {path} after {took_sec:.2f} s: {answer.text}"
        assert (answer.status_code, answer.json()["err_id"]) == (503, "ERR-PYOCO-0003"), told
        assert answer.json()["detail"].startswith("nats unavailable: "), told
        assert took_sec < 1, told
    assert good(started.http.get("/health")) == {"status": "ok"}
    ready = started.http.get("/ready")
    assert ready.status_code == 503
    assert ready.json()["detail"]["missing"][0].startswith("nats: ")


def check_well(started: Gateway, run_id: str) -> None:
    """No route says so any more."""
    for method, path, more in NEEDS_NATS:
        if not path.endswith(("/watch", "/restart")):
            answer = started.http.request(method, path.format(run=run_id), **more)
            assert answer.status_code in (200, 404), f"{method} {path}: {answer.text}"


# -- API keys ---------------------------------------------------------------------------------------------------------


def test_tenants_do_not_see_each_other_and_a_revoked_key_is_refused(house: House, tmp_path: Path) -> None:
    """401 without a key, 403 with a wrong one, 404 for another tenant's run; a revocation holds at once, everywhere."""
    mine, yours = make_keys(house.nats_url, "mine", "yours")
    (boss,) = make_keys(house.nats_url, "mine", admin=True)
    with ExitStack() as stack:
        gates = [stack.enter_context(gateway(tmp_path, house.nats_url, name=name, **AUTH)) for name in ("a1", "a2")]
        one, two = (gate.url for gate in gates)
        me, you, admin = (
            stack.enter_context(client_of(one, **{"X-API-Key": key.plain})) for key in (mine, yours, boss)
        )
        me_there = stack.enter_context(client_of(two, **{"X-API-Key": mine.plain}))
        until(lambda: me.get("/ready").status_code, lambda status: status == 200)
        until(lambda: me_there.get("/ready").status_code, lambda status: status == 200)
        refused = gates[0].http.get("/runs")
        assert (refused.status_code, refused.json()["err_id"]) == (401, "ERR-PYOCO-0014")
        wrong = gates[0].http.get("/runs", headers={"X-API-Key": mine.plain[:-4] + "aaaa"})
        assert (wrong.status_code, wrong.json()["err_id"]) == (403, "ERR-PYOCO-0015")
        run_id = good(me.post("/runs", json={"flow_name": "hello"}))["run_id"]
        with watching(me_there, f"/runs/{run_id}/watch") as stream:
            assert stream.wait(is_completed).data["snapshot"]["tenant_id"] == "mine"
        check_isolated(me, you, run_id)
        assert you.get("/actors").status_code == me.get("/actors").status_code == 403
        assert {"a1", "a2"} <= {each["process"] for each in good(admin.get("/actors"))}
        check_revoked(house.nats_url, mine.key_id, me, me_there)
        assert you.get("/runs").status_code == 200


@pytest.mark.skipif(not PEER.exists(), reason="the published client is not installed: make .venv-peers/.ready")
def test_a_key_of_the_published_admin_opens_our_gateway_to_the_published_client(house: House, tmp_path: Path) -> None:
    """But not to what only admins see."""
    plain = new_peer_key(house.nats_url, "demo", tmp_path)
    with (
        gateway(tmp_path, house.nats_url, name="a3", **AUTH) as gate,
        client_of(gate.url, **{"X-API-Key": plain}) as me,
    ):
        until(lambda: me.get("/ready").status_code, lambda status: status == 200)
        submitted = peer(gate.url, "submit", "--flow-name", "fail", cwd=tmp_path, also=("--api-key", plain))
        run_id = json.loads(submitted)["run_id"]
        until(lambda: good(me.get(f"/runs/{run_id}"))["status"], lambda status: status == "FAILED")
        for path in ("/dlq", "/dlq/1", "/actors"):
            answer = me.get(path)
            assert (answer.status_code, answer.json()["err_id"]) == (403, "ERR-PYOCO-0039"), path


def check_isolated(me: httpx.Client, you: httpx.Client, run_id: str) -> None:
    """My run is mine alone, and so are its figures; runs of no tenant are nobody's."""
    assert [item["run_id"] for item in good(me.get("/runs"))] == [run_id]
    assert good(you.get("/runs")) == []
    for method, path in (("GET", ""), ("GET", "/tasks"), ("GET", "/watch"), ("POST", "/cancel")):
        answer = you.request(method, f"/runs/{run_id}{path}")
        assert (answer.status_code, answer.json()["err_id"]) == (404, "ERR-PYOCO-0005"), f"{method} {path}"
    assert 'pyoco_runs_total{status="COMPLETED"} 1.0' in me.get("/metrics").text
    assert 'status="COMPLETED"} 1.0' not in you.get("/metrics").text
    with watching(you, "/runs/watch") as yours:
        mine = good(me.post("/runs", json={"flow_name": "hello", "tag": "nobody"}))["run_id"]
        own = good(you.post("/runs", json={"flow_name": "hello", "tag": "nobody"}))["run_id"]
        yours.wait(lambda event: event.data.get("run_id") == own)
        assert all(event.data.get("run_id") != mine for event in yours.events)


def check_revoked(nats_url: str, key_id: str, *clients: httpx.Client) -> None:
    """A key that works is refused as soon as its revocation is stored; `at once` is the time of a watch event."""
    assert [client.get("/runs").status_code for client in clients] == [200] * len(clients)
    revoke_key(nats_url, key_id)
    began = time.monotonic()
    until(lambda: {client.get("/runs").status_code for client in clients}, lambda found: found == {403})
    assert time.monotonic() - began < 1


# -- bad clients ------------------------------------------------------------------------------------------------------


def test_big_bodies_and_half_requests_do_not_hold_up_others(house: House, tag: str) -> None:
    """413 for what is too big, and meanwhile fifty connections that send half a request; all others are served."""
    held = [slow_post(house.one.url, 100) for _ in range(25)]
    try:
        for each in held[::2]:
            each.sendall(b'{"flow')
        for _ in range(25):
            held.append(connected(house.one.url))
            held[-1].sendall(b"POST /runs HTTP/1.1\r\nhost: x\r\ncontent-")
        with load(50, lambda number: house.one.submit("hello", tag=tag)) as calls:
            big = "x" * (17 * 2**20)
            answer = house.one.http.post("/runs", json={"flow_name": "hello", "params": {"big": big}})
            assert (answer.status_code, answer.json()["err_id"]) == (413, "ERR-PYOCO-0040")
            yaml = house.one.http.post(
                "/runs/yaml",
                files={"workflow": GREETING + "#" * 300_000},
                data={"flow_name": "greeting", "tag": tag},
            )
            assert (yaml.status_code, yaml.json()["err_id"]) == (413, "ERR-PYOCO-0016")
            more(calls, 25)
        assert len(house.one.listed(tag=tag)) == len(calls)
    finally:
        for each in held:
            each.close()


def test_a_run_that_nats_would_not_take_is_refused_with_words_and_leaves_nothing(house: House, tag: str) -> None:
    """413 and not 503: to try again would not help. In a batch it keeps no other back."""
    big = {"flow_name": "hello", "tag": tag, "params": {"big": "x" * 2**20}}
    answer = house.one.http.post("/runs", json=big)
    assert (answer.status_code, answer.json()["err_id"]) == (413, "ERR-PYOCO-0040")
    assert "max_payload" in answer.json()["detail"]
    done = good(house.one.http.post("/runs/batch", json={"runs": [big, {"flow_name": "hello", "tag": tag}]}))
    assert (done["accepted"], done["results"][0]["err_id"]) == (1, "ERR-PYOCO-0040")
    assert list(house.one.listed(tag=tag)) == [done["results"][1]["run_id"]]


def connected(url: str) -> socket.socket:
    """A bare connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def slow_post(url: str, length: int) -> socket.socket:
    """The head of a POST /runs whose body of that length is still to come."""
    found = connected(url)
    head = f"POST /runs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    found.sendall(head.encode())
    return found
