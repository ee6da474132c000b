"""With API keys on, tenants cannot see each other: a table over every route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import frozen
from quart import Quart

from pyoco_runtime.gateway.app import create_gateway_app
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunStatus, TaskStatus
from pyoco_runtime.model.worker import WorkerState
from tests.unit.gateway.support import Answer, Client, Office, on_asyncio
from tests.unit.gateway.test_nats_away import FORM, WHEEL, WORKFLOW, ask

SECRET = "ours-alone"
"""In every text that belongs to tenant a; nobody else may ever read it."""

TENANT_FIELDS = ("tenant_id", "api_key_id")


@frozen(kw_only=True)
class Row:
    """What tenant b gets on a route when everything there is belongs to tenant a."""

    method: str
    rule: str
    body: bytes = b""
    query: str = ""
    status: int = 200
    err_id: str | None = None
    for_admins: bool = False
    values: Mapping[str, str] = {
        "run_id": f"run-{SECRET}",
        "seq": "1",
        "worker_id": "w",
        "process": "p-1",
        "actor": "http",
    }

    @property
    def path(self) -> str:
        path = self.rule
        for name, value in self.values.items():
            for kind in ("", "int:", "path:"):
                path = path.replace(f"<{kind}{name}>", value)
        return path + self.query


ABSENT: dict[str, Any] = {"status": 404, "err_id": "ERR-PYOCO-0005"}
NO_LETTER: dict[str, Any] = {"status": 404, "err_id": "ERR-PYOCO-0036", "for_admins": True}
TABLE = [
    Row(method="GET", rule="/runs"),
    Row(method="GET", rule="/runs", query="?include=full"),
    Row(method="GET", rule="/runs", query=f"?flow=flow-{SECRET}&updated_after=0"),
    Row(method="GET", rule="/runs/watch", query="?timeout_sec=6"),
    Row(method="GET", rule="/runs/<run_id>", query="?include=all", **ABSENT),
    Row(method="GET", rule="/runs/<run_id>/tasks", **ABSENT),
    Row(method="GET", rule="/runs/<run_id>/watch", **ABSENT),
    Row(method="POST", rule="/runs/<run_id>/cancel", **ABSENT),
    Row(method="POST", rule="/runs", body=b'{"flow_name": "f"}'),
    Row(method="POST", rule="/runs/batch", body=b'[{"flow_name": "f"}]'),
    Row(method="POST", rule="/runs/yaml", body=WORKFLOW),
    Row(method="GET", rule="/workers", query="?scope=all&include_hidden=true"),
    Row(method="PATCH", rule="/workers/<worker_id>", body=b'{"hidden": true}'),
    Row(method="GET", rule="/workers/watch", query="?scope=all&include_hidden=true&timeout_sec=6"),
    Row(method="GET", rule="/metrics"),
    Row(method="GET", rule="/stats"),
    Row(method="GET", rule="/stats/watch", query="?timeout_sec=20"),
    Row(method="GET", rule="/dlq", for_admins=True),
    Row(method="GET", rule="/dlq", query=f"?run_id=run-{SECRET}", for_admins=True),
    Row(method="GET", rule="/dlq/watch", query="?timeout_sec=6", for_admins=True),
    Row(method="GET", rule="/dlq/<int:seq>", **NO_LETTER),
    Row(method="POST", rule="/dlq/<int:seq>/replay", **NO_LETTER),
    Row(method="DELETE", rule="/dlq/<int:seq>", **NO_LETTER),
    Row(method="GET", rule="/actors", for_admins=True),
    Row(method="GET", rule="/actors/watch", query="?timeout_sec=6", for_admins=True),
    Row(method="POST", rule="/actors/<process>/<path:actor>/restart", for_admins=True),
]
SHARED = {
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/wheels"),
    ("POST", "/wheels"),
    ("GET", "/wheels/history"),
    ("GET", "/wheels/<name>"),
    ("DELETE", "/wheels/<name>"),
}
"""What belongs to no tenant: wheels are installed by workers, which serve all of them."""

OF_NOBODY = ("/", "/docs", "/openapi.json", "/static")
"""What says the same to everybody."""


def _is_shared(method: str, rule: str) -> bool:
    return (method, rule) in SHARED or rule in OF_NOBODY or rule.startswith(("/static/", "/docs"))


async def furnish(office: Office) -> None:
    """Everything that there can be, all of tenant a."""
    run_id = f"run-{SECRET}"
    fields: dict[str, Any] = {
        "tenant_id": "a",
        "api_key_id": f"key-{SECRET}",
        "flow_name": f"flow-{SECRET}",
        "error": SECRET,
        "params": {SECRET: SECRET},
        "tasks": {SECRET: TaskStatus.FAILED},
        "worker_id": "w",
    }
    office.write(run_id, **fields)
    office.write(run_id, RunStatus.FAILED, **fields)
    job = Job(run_id=run_id, flow_name=f"flow-{SECRET}", tag="t", submitted_at=1.0, tenant_id="a")
    office.bury(run_id=run_id, tenant_id="a", flow_name=f"flow-{SECRET}", error=SECRET, job=job)
    last: dict[str, Any] = {"last_run_id": run_id, "last_run_status": "FAILED", "last_run_started_at": 1.0}
    current = {"current_run_ids": [run_id]}
    office.work("w", WorkerState.RUNNING, current_run_id=run_id, extra=current, last_run_finished_at=2.0, **last)
    await office.caught_up()


def state(office: Office) -> tuple[object, object, object]:
    """All that belongs to tenant a."""
    run = office.server.snapshot(f"run-{SECRET}")
    return run, dict(office.server.letters.messages), office.server.promises.get("a\nk")


@pytest.mark.parametrize("admin", [False, True], ids=["key", "admin key"])
@pytest.mark.parametrize("row", TABLE, ids=[f"{row.method} {row.rule}{row.query}" for row in TABLE])
@on_asyncio
async def test_another_tenant_sees_and_changes_nothing(row: Row, admin: bool) -> None:
    """Neither a text, nor an id, nor a count; also not with an admin key, which is for the house."""
    status, err_id = (row.status, row.err_id) if admin or not row.for_admins else (403, "ERR-PYOCO-0039")
    if row.rule.startswith("/actors") and admin:
        return  # the house belongs to no tenant: its admins see all of it
    async with Office(auth=True).open() as office:
        await furnish(office)
        before = state(office)
        client = office.key("b", admin=admin)[1]
        kind = FORM if row.body.startswith(b"--edge") else "application/json"
        answer = await client.with_headers(Content_Type=kind).ask(row.method, row.path, row.body)
        assert answer.status == status, answer
        if err_id is not None:
            assert answer.err_id == err_id
        assert SECRET not in answer.text
        assert state(office) == before


@pytest.mark.parametrize("row", TABLE, ids=[f"{row.method} {row.rule}{row.query}" for row in TABLE])
@on_asyncio
async def test_its_own_tenant_sees_it(row: Row) -> None:
    """The table is about routes that do work: what is 404 above is 200 here."""
    async with Office(auth=True).open() as office:
        await furnish(office)
        client = office.key("a", admin=True)[1]
        answer = await ask(client, row.method, row.path, row.body)
        assert answer.status == 200, answer
        if row.method == "GET" and row.rule != "/actors" and not row.rule.endswith("/watch"):
            assert SECRET in answer.text


@on_asyncio
async def test_the_table_is_complete() -> None:
    """A route that is added is either in the table, or belongs to no tenant."""
    app = create_gateway_app(Office(auth=True).parts)
    assert isinstance(app, Quart)
    rules = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    missing = {(m, r) for m, r in rules - {(row.method, row.rule) for row in TABLE} if not _is_shared(m, r)}
    assert not missing


@on_asyncio
async def test_changes_of_another_tenant_are_not_streamed() -> None:
    """Neither as a change nor as a run that is gone; one's own are."""
    async with Office(auth=True).open() as office:
        a, b = office.key("a")[1], office.key("b")[1]
        async with a.watch("/runs/watch") as ours, b.watch("/runs/watch") as theirs:
            await ours.next()
            await theirs.next()
            office.write("r", tenant_id="a")
            office.remove("r")
            assert [(await ours.next()).name for _ in range(2)] == ["run", "gone"]
            assert (await theirs.next()).name == "heartbeat"


@on_asyncio
async def test_runs_of_nobody_are_nobodys() -> None:
    """What was submitted before API keys were turned on is seen by no tenant."""
    async with Office(auth=True).open() as office:
        office.write("r")
        await office.caught_up()
        client = office.key("a")[1]
        assert (await client.get("/runs")).json == []
        assert (await client.get("/runs/r")).status == 404


# -- who is let in ----------------------------------------------------------------------------------------------------

EVERY = [(row.method, row.path, row.body) for row in TABLE] + [
    ("GET", "/wheels", b""),
    ("POST", "/wheels", WHEEL),
    ("GET", "/wheels/history", b""),
    ("GET", "/wheels/x", b""),
    ("DELETE", "/wheels/x", b""),
    ("GET", "/nowhere", b""),
    ("PUT", "/runs", b""),
    ("OPTIONS", "/runs", b""),
    ("GET", "//runs", b""),
    ("GET", "/health/../runs", b""),
    ("GET", "/static/%2e%2e/runs", b""),
    ("GET", "/health%2f", b""),
]


def _ids(values: list[tuple[str, str, bytes]]) -> list[str]:
    return [f"{method} {path}" for method, path, _ in values]


@pytest.mark.parametrize(("method", "path", "body"), EVERY, ids=_ids(EVERY))
@on_asyncio
async def test_without_a_right_key_nobody_comes_in(method: str, path: str, body: bytes) -> None:
    """401 without a key, 403 with a wrong one, also where there is no route."""
    async with Office(auth=True).open() as office:
        await furnish(office)
        before = state(office)
        answer = await ask(office.client, method, path, body)
        assert (answer.status, answer.err_id) == (401, "ERR-PYOCO-0014")
        assert answer.json["detail"] == "api key required"
        for key in ("nonsense", "pyoco_abcdefgh.0123456789abcdef", ""):
            answer = await ask(office.client.with_headers(X_API_Key=key), method, path, body)
            assert (answer.status, answer.err_id) == ((403, "ERR-PYOCO-0015") if key else (401, "ERR-PYOCO-0014"))
        assert state(office) == before
        assert SECRET not in answer.text


@on_asyncio
async def test_health_and_ready_need_no_key() -> None:
    """Whoever watches the process has none."""
    async with Office(auth=True).open() as office:
        assert [(await office.client.get(path)).status for path in ("/health", "/ready")] == [200, 200]


@on_asyncio
async def test_a_revoked_key_is_refused_at_once() -> None:
    """The cache is emptied by the watch."""
    async with Office(auth=True).open() as office:
        key_id, client = office.key("a")
        assert (await client.get("/runs")).status == 200
        await office.process.keys.revoke(key_id, 5.0)
        await office.caught_up()
        answer = await client.get("/runs")
        assert (answer.status, answer.err_id, answer.json["detail"]) == (403, "ERR-PYOCO-0015", "invalid api key")


@on_asyncio
async def test_two_keys_in_one_request_are_refused() -> None:
    """Somebody in between may have looked at the other one."""
    async with Office(auth=True).open() as office:
        client = office.key("a")[1]
        plain = client.headers["X-API-Key"]
        both = Client(client.app, {"X-API-Key": plain, "x-api-key": plain})
        assert (await both.get("/runs")).status == 403


@on_asyncio
async def test_a_letter_of_nobody_is_the_admins() -> None:
    """It was about a message that was no job: it may hold anything."""
    async with Office(auth=True).open() as office:
        seq = office.bury(run_id=None, payload=SECRET)
        await office.caught_up()
        plain, admin = office.key("a")[1], office.key("a", admin=True)[1]
        assert (await plain.get(f"/dlq/{seq}")).status == 403
        assert (await admin.get(f"/dlq/{seq}")).json["payload"] == SECRET
        assert SECRET not in (await plain.get("/dlq")).text
        assert [letter["seq"] for letter in (await admin.get("/dlq")).json["items"]] == [seq]


async def _submitted(client: Client) -> Answer:
    return await client.ask("POST", "/runs", json.dumps({"flow_name": "f"}).encode())


@on_asyncio
async def test_each_tenant_sees_what_it_has_submitted() -> None:
    """And only that, in every list."""
    async with Office(auth=True).open() as office:
        clients = {tenant: office.key(tenant)[1] for tenant in ("a", "b", "c")}
        made = {tenant: (await _submitted(client)).json["run_id"] for tenant, client in clients.items()}
        for tenant, client in clients.items():
            assert [each["run_id"] for each in (await client.get("/runs")).json] == [made[tenant]]
            for other, run_id in made.items():
                assert (await client.get(f"/runs/{run_id}")).status == (200 if other == tenant else 404)
