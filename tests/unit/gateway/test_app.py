"""The app without a socket: health, readiness, and how errors are answered."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import pytest
from quart import Blueprint, request
from quart.testing.utils import sentinel as no_json

from pyoco_runtime.errors import (
    AdminOnly,
    ApiKeyRequired,
    BodyTooLarge,
    InvalidApiKey,
    InvalidQuery,
    InvalidRequest,
    InvalidWorkersRequest,
    KeyReused,
    LetterNotFound,
    LinkClosed,
    NatsUnavailable,
    NoSuchActor,
    NotReplayable,
    NotRunning,
    RunNotFound,
    StartTimeout,
    WorkerNotFound,
    WorkflowTooLarge,
)
from pyoco_runtime.gateway.app import create_app, create_gateway_app, create_probe_app
from tests.unit.gateway.support import Answer, Client, Office, on_asyncio

MISSING = "nats: not connected to nats://127.0.0.1:4222 (ConnectionRefusedError)"


class Lacking:
    """A health view that a test can change."""

    def __init__(self, *missing: str) -> None:
        self.now = missing

    def missing(self) -> tuple[str, ...]:
        return self.now


def raising(make: Callable[[], Exception]) -> Blueprint:
    """One route that fails, and one that reads JSON."""
    routes = Blueprint("raising", __name__)

    @routes.get("/raise")
    async def fail() -> str:
        raise make()

    @routes.post("/json")
    async def read() -> str:
        await request.get_json()
        return "read"

    return routes


def ask(method: str, path: str, *, health: Lacking | None = None, error: Exception | None = None) -> tuple[int, object]:
    """Send one request, with a body that is no JSON, and give back status and JSON."""

    async def main() -> tuple[int, object]:
        app = create_app(health or Lacking(), [raising(lambda: error or RuntimeError())])
        headers = {"content-type": "application/json"}
        data = b"{" if method == "POST" else None
        answer = await app.test_client().open(path, method=method, headers=headers, data=data, json=no_json)
        return answer.status_code, await answer.get_json()

    return anyio.run(main)


def test_health_is_ok_while_the_process_is_not_ready() -> None:
    """Liveness says nothing about NATS."""
    assert ask("GET", "/health", health=Lacking(MISSING)) == (200, {"status": "ok"})


def test_ready_when_nothing_is_missing() -> None:
    """The answer that lets traffic in."""
    assert ask("GET", "/ready") == (200, {"status": "ready"})


def test_not_ready_names_everything_that_is_missing() -> None:
    """The person who reads it knows where to look."""
    health = Lacking(MISSING, "actor runtime/gateway/http is restarting")
    assert ask("GET", "/ready", health=health) == (
        503,
        {
            "detail": {"missing": [MISSING, "actor runtime/gateway/http is restarting"]},
            "err_id": "ERR-PYOCO-0003",
            "msg_id": "MSG-PYOCO-0003",
            "status": "not ready",
        },
    )


@pytest.mark.parametrize(
    ("error", "status", "number", "detail"),
    [
        (NatsUnavailable("connection lost"), 503, 3, "nats unavailable: connection lost"),
        (LinkClosed("closed"), 503, 3, "nats unavailable: closed"),
        (NoSuchActor("there is no actor 'x'"), 404, 33, "there is no actor 'x'"),
        (InvalidRequest("tag: must not be empty"), 422, 2, "invalid request: tag: must not be empty"),
        (RunNotFound(), 404, 5, "run not found"),
        (RunNotFound("its snapshot cannot be read"), 404, 5, "run not found: its snapshot cannot be read"),
        (ApiKeyRequired(), 401, 14, "api key required"),
        (InvalidApiKey(), 403, 15, "invalid api key"),
        (WorkflowTooLarge("9 bytes"), 413, 16, "workflow too large: 9 bytes"),
        (InvalidQuery("limit: x"), 422, 17, "invalid list query: limit: x"),
        (InvalidWorkersRequest("limit: x"), 422, 19, "invalid workers request: limit: x"),
        (WorkerNotFound(), 404, 20, "worker not found"),
        (LetterNotFound(), 404, 36, "dead letter not found"),
        (NotReplayable("why"), 409, 37, "dead letter cannot be replayed: why"),
        (KeyReused("k"), 409, 38, "idempotency key reused: k"),
        (AdminOnly("make one"), 403, 39, "admin key required: make one"),
        (BodyTooLarge("9 bytes"), 413, 40, "request too large: 9 bytes"),
    ],
)
def test_our_errors_carry_their_status_and_their_ids(error: Exception, status: int, number: int, detail: str) -> None:
    """One table says how each is answered."""
    assert ask("GET", "/raise", error=error) == (
        status,
        {"detail": detail, "err_id": f"ERR-PYOCO-{number:04d}", "msg_id": f"MSG-PYOCO-{number:04d}"},
    )


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/x", 404, "not found: GET /x"),
        ("DELETE", "/health", 405, "method not allowed: DELETE /health"),
        ("POST", "/json", 400, "bad request: "),
    ],
)
def test_what_quart_refuses_is_answered_as_json(method: str, path: str, status: int, detail: str) -> None:
    """A client parses every error in one way."""
    found, body = ask(method, path)
    assert found == status
    assert isinstance(body, dict)
    assert str(body["detail"]).startswith(detail)
    assert (body["err_id"], body["msg_id"]) == ("ERR-PYOCO-0002", "MSG-PYOCO-0002")


@pytest.mark.parametrize(
    ("error", "err_id"),
    [
        (ValueError("a secret"), None),
        (NotRunning("a secret"), None),
        (StartTimeout("a secret"), "ERR-PYOCO-0030"),
    ],
)
def test_a_defect_is_logged_and_does_not_tell_its_text(
    error: Exception, err_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The trace goes to the log, not to the client."""
    with caplog.at_level(logging.ERROR, logger="pyoco_runtime.http"):
        status, body = ask("GET", "/raise", error=error)
    assert (status, isinstance(body, dict) and body["err_id"]) == (500, err_id)
    assert "secret" not in str(body)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]


def test_a_wrong_method_is_told_the_right_ones() -> None:
    """405 keeps its Allow header."""

    async def main() -> str:
        answer = await create_probe_app(Lacking()).test_client().post("/health")
        return str(answer.headers["Allow"])

    assert "GET" in anyio.run(main)


def test_a_body_that_is_too_large_is_413() -> None:
    """The limit of the app is answered as JSON too."""

    async def main() -> tuple[int, object]:
        app = create_app(Lacking(), [raising(RuntimeError)])
        app.config["MAX_CONTENT_LENGTH"] = 10
        answer = await app.test_client().post("/json", data=b"x" * 11, headers={"content-type": "application/json"})
        return answer.status_code, (await answer.get_json())["err_id"]

    assert anyio.run(main) == (413, "ERR-PYOCO-0002")


def test_the_probe_has_health_and_ready_and_nothing_else() -> None:
    """A worker's pod offers no other route."""

    async def main() -> list[int]:
        client = create_probe_app(Lacking()).test_client()
        return [(await client.get(path)).status_code for path in ("/health", "/ready", "/runs", "/")]

    assert anyio.run(main) == [200, 200, 404, 404]


# -- the whole gateway ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/runs/", 404),
        ("GET", "/runs/a/b/c", 404),
        ("GET", "/RUNS", 404),
        ("GET", "/../etc/passwd", 404),
        ("DELETE", "/runs", 405),
        ("PUT", "/runs/a", 405),
        ("DELETE", "/runs/a/cancel", 405),
        ("POST", "/metrics", 405),
        ("POST", "/workers/w", 405),
        ("PATCH", "/dlq/1", 405),
        ("NONSENSE", "/runs", 405),
    ],
)
@on_asyncio
async def test_what_the_gateway_does_not_have_is_answered_as_json(method: str, path: str, status: int) -> None:
    """404 and 405 with the three fields; 405 says what is allowed."""
    async with Office().open() as office:
        answer = await office.client.ask(method, path)
        assert answer.status == status, answer
        assert answer.err_id.startswith("ERR-PYOCO-")
        if status == 405:
            assert answer.headers["allow"]


def comparable(answer: Answer) -> tuple[int, dict[str, str], object]:
    """Without what is made anew each time: ids, lengths of JSON texts."""
    body = answer.json
    if isinstance(body, dict):
        body = {key: value for key, value in body.items() if key not in ("run_id", "results")}
    return answer.status, {k: v for k, v in answer.headers.items() if k != "content-length"}, body


ASKS = [
    ("GET", "/runs", b"", {}),
    ("GET", "/runs?limit=1&updated_after=0", b"", {}),
    ("GET", "/runs?limit=0", b"", {}),
    ("GET", "/runs?flow=%ff", b"", {}),
    ("GET", "/runs?include=full&status=running", b"", {}),
    ("GET", "/runs", b"x" * 100, {}),
    ("POST", "/runs", b'{"flow_name": "f"}', {}),
    ("POST", "/runs", b'{"flow_name": "f"}', {"Idempotency_Key": "k"}),
    ("POST", "/runs", b'{"flow_name": "g"}', {"Idempotency_Key": "k"}),
    ("POST", "/runs", b'{"flow_name": "f"}', {"Idempotency_Key": ""}),
    ("POST", "/runs", b"{", {}),
    ("POST", "/runs", b"", {}),
    ("POST", "/runs", b" " * (16 * 2**20 + 1), {}),
    ("POST", "/runs?x=%ff", b'{"flow_name": "f"}', {}),
    ("POST", "/runs/batch", b'[{"flow_name": "f"}, {}]', {}),
    ("POST", "/runs/batch", b"[]", {}),
    ("GET", "/runs", b"", {"X_API_Key": "nonsense"}),
    ("POST", "/runs", b"{", {"X_API_Key": "nonsense"}),
]


@pytest.mark.parametrize("auth", [False, True])
@on_asyncio
async def test_the_short_way_answers_as_the_long_one(auth: bool) -> None:
    """The busiest routes do not go through Quart; nobody can tell."""
    async with Office(auth=auth).open() as office:
        office.write("a", tenant_id="demo" if auth else None)
        await office.caught_up()
        client = office.key("demo")[1] if auth else office.client
        long_way = Client(create_gateway_app(office.parts), client.headers)
        for method, path, body, headers in ASKS:
            found = [
                comparable(await each.with_headers(**headers).ask(method, path, body)) for each in (client, long_way)
            ]
            if headers.get("Idempotency_Key") == "k" and found[0][0] == 200:
                found[1][1].pop("idempotent-replayed")
            if path.startswith("/runs?") or path == "/runs":
                found = [(status, head, len(body) if isinstance(body, list) else body) for status, head, body in found]
            if method == "GET":
                assert found[0] == found[1], (method, path)
            else:
                assert found[0][:2] == found[1][:2], (method, path)
                assert found[0][2] == found[1][2], (method, path)


@on_asyncio
async def test_an_answer_to_a_defect_is_json_on_both_ways() -> None:
    """500 without the text of the error."""
    async with Office().open() as office:

        async def broken(*_: object) -> object:
            raise RuntimeError("a secret")

        office.process.run_store.create = broken  # type: ignore[assignment,method-assign]  # a defect
        for client in (office.client, Client(create_gateway_app(office.parts))):
            answer = await client.post("/runs", {"flow_name": "f"})
            assert answer.status == 500
            assert "secret" not in answer.text
            assert answer.json["err_id"] is None
