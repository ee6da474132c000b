"""NATS away: every route that needs it says so at once; NATS back: all is well."""

from __future__ import annotations

import json

import anyio
import pytest

from pyoco_runtime.testing.faults import Slow
from tests.unit.gateway.support import Answer, Client, Office, on_asyncio

FORM = "multipart/form-data; boundary=edge"
WORKFLOW = (
    b'--edge\r\nContent-Disposition: form-data; name="workflow"; filename="flow.yaml"\r\n\r\n'
    b'flow: {graph: a}\ntasks: {a: {callable: "m:f"}}\n\r\n'
    b'--edge\r\nContent-Disposition: form-data; name="flow_name"\r\n\r\nf\r\n--edge--\r\n'
)
WHEEL = (
    b'--edge\r\nContent-Disposition: form-data; name="wheel"; filename="demo-1.0-py3-none-any.whl"\r\n\r\n'
    b"bytes\r\n--edge--\r\n"
)
ROUTES: list[tuple[str, str, bytes]] = [
    ("POST", "/runs", b'{"flow_name": "f"}'),
    ("POST", "/runs/batch", b'[{"flow_name": "f"}, {"flow_name": "g"}]'),
    ("POST", "/runs/yaml", WORKFLOW),
    ("GET", "/runs", b""),
    ("GET", "/runs?updated_after=1", b""),
    ("GET", "/runs?include=full", b""),
    ("GET", "/runs/watch", b""),
    ("GET", "/runs/a", b""),
    ("GET", "/runs/a/tasks", b""),
    ("GET", "/runs/a/watch", b""),
    ("POST", "/runs/a/cancel", b""),
    ("GET", "/workers", b""),
    ("GET", "/workers/watch", b""),
    ("PATCH", "/workers/w", b'{"hidden": true}'),
    ("GET", "/metrics", b""),
    ("GET", "/stats", b""),
    ("GET", "/stats/watch", b""),
    ("GET", "/actors", b""),
    ("GET", "/actors/watch", b""),
    ("POST", "/actors/p-1/http/restart", b""),
    ("GET", "/dlq", b""),
    ("GET", "/dlq/watch", b""),
    ("GET", "/dlq/1", b""),
    ("POST", "/dlq/1/replay", b""),
    ("DELETE", "/dlq/1", b""),
    ("GET", "/wheels", b""),
    ("POST", "/wheels", WHEEL),
    ("GET", "/wheels/history", b""),
    ("GET", "/wheels/demo-1.0-py3-none-any.whl", b""),
    ("DELETE", "/wheels/demo-1.0-py3-none-any.whl", b""),
]
IDS = [f"{method} {path}" for method, path, _ in ROUTES]


async def ask(client: Client, method: str, path: str, body: bytes) -> Answer:
    """One request, whose answer, if it is a stream, is not waited for."""
    kind = FORM if body.startswith(b"--edge") else "application/json"
    async with client.with_headers(Content_Type=kind).watch(path, method, body) as stream:
        if stream.headers["content-type"] == "text/event-stream":
            return Answer(stream.status, stream.headers, b"")
        return Answer(stream.status, stream.headers, await stream.body())


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=IDS)
@pytest.mark.parametrize("was_up", [True, False], ids=["lost", "never there"])
@on_asyncio
async def test_every_route_that_needs_nats_is_503_at_once(method: str, path: str, body: bytes, was_up: bool) -> None:
    """Not after a time-out; and once NATS is back, the same request is well, without a restart."""
    office = Office(connected=was_up)
    async with office.open():
        office.write("a")
        office.work("w")
        office.bury()
        if was_up:
            await office.caught_up()
            office.process.disconnect()
        began = anyio.current_time()
        answer = await ask(office.client, method, path, body)
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert answer.json["detail"].startswith("nats unavailable: ")
        assert anyio.current_time() - began < 0.1
        office.process.reconnect()
        await office.caught_up()
        assert (await ask(office.client, method, path, body)).status < 500


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=IDS)
@on_asyncio
async def test_with_api_keys_too(method: str, path: str, body: bytes) -> None:
    """Whether the key is known from before or was never seen: a key that nobody can check is not called wrong."""
    async with Office(auth=True).open() as office:
        known, new = office.key("demo", admin=True)[1], office.key("demo", admin=True)[1]
        assert (await known.get("/runs")).status == 200
        office.process.disconnect()
        for client in (known, new):
            answer = await ask(client, method, path, body)
            assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert (await ask(office.client, method, path, body)).status == 401


@on_asyncio
async def test_health_is_ok_meanwhile_and_ready_is_not() -> None:
    """So that nobody restarts a process that only waits."""
    async with Office().open() as office:
        office.process.disconnect()
        office.health.lacks = ("nats: not connected",)
        assert (await office.client.get("/health")).json == {"status": "ok"}
        answer = await office.client.get("/ready")
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert "nats: not connected" in answer.json["detail"]["missing"]


@on_asyncio
async def test_a_request_that_is_wrong_is_still_wrong() -> None:
    """Who can mend it is told so, also while NATS is away."""
    async with Office().open() as office:
        office.process.disconnect()
        assert (await office.client.post("/runs", {})).status == 422


@on_asyncio
async def test_a_connection_lost_in_the_middle_of_a_request_is_503() -> None:
    """The answer does not wait for the time-out of the request to NATS."""
    async with Office().open() as office:
        office.faults.next("run_store.create", Slow(4.0))
        found: list[Answer] = []

        async def submit() -> None:
            found.append(await office.client.ask("POST", "/runs", json.dumps({"flow_name": "f"}).encode()))

        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            group.start_soon(submit)
            await anyio.sleep(0.5)
            office.process.disconnect()
        assert (found[0].status, found[0].err_id) == (503, "ERR-PYOCO-0003")
        assert anyio.current_time() - began < 1
