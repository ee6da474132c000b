"""The app without a socket: health, readiness, and how errors are answered."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
import pytest
from quart import Blueprint, request
from quart.testing.utils import sentinel as no_json

from pyoco_runtime.errors import LinkClosed, NatsUnavailable, NoSuchActor, NotRunning, PyocoError, StartTimeout
from pyoco_runtime.gateway.app import create_app, create_probe_app

MISSING = "nats: not connected to nats://127.0.0.1:4222 (ConnectionRefusedError)"


class Lacking:
    """A health view that a test can change."""

    def __init__(self, *missing: str) -> None:
        self.now = missing

    def missing(self) -> tuple[str, ...]:
        return self.now


def invalid_request(text: str) -> PyocoError:
    error = PyocoError(text)
    error.number = 2
    return error


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
        (invalid_request("tag: must not be empty"), 422, 2, "tag: must not be empty"),
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
