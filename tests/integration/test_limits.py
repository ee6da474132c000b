"""What no client can do to the real program, over raw sockets: everything is refused in words, and never with a 5xx."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import Gateway, gateway, until
from tests.integration.worker_client import PATIENCE_SEC

CLOSE = b"connection: close\r\n"
JSON = b"content-type: application/json\r\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with room for eight connections."""
    place = tmp_path_factory.mktemp("limits")
    limits = {"PYOCO_HTTP_MAX_CONNECTIONS": "8", "PYOCO_WHEEL_MAX_BYTES": "1000"}
    with nats_server(place / "store") as nats, gateway(place, nats.url, **limits) as one:
        one.http.close()  # its kept connections would count
        yield one
        assert not [line for line in one.process.lines if line["level"] in ("ERROR", "CRITICAL")]


def dial(house: Gateway) -> socket.socket:
    """A new connection."""
    at = urlsplit(house.url)
    return socket.create_connection((at.hostname or "", at.port or 0), timeout=PATIENCE_SEC)


def rest_of(connection: socket.socket) -> bytes:
    """All until the server closes it."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


def ask(house: Gateway, request: bytes) -> tuple[int, bytes]:
    """Send this and nothing else; the status and the body of the answer."""
    with dial(house) as connection:
        connection.sendall(request)
        answer = rest_of(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), answer[:200]
    assert b"Traceback" not in answer
    return int(head.split()[1]), body


def post(path: str, body: bytes, more: bytes = JSON) -> bytes:
    """A request with a body."""
    length = str(len(body)).encode()
    return (
        b"POST "
        + path.encode()
        + b" HTTP/1.1\r\nhost: x\r\n"
        + more
        + CLOSE
        + b"content-length: "
        + length
        + b"\r\n\r\n"
        + body
    )


def get(path: bytes, more: bytes = b"") -> bytes:
    """A request without one."""
    return b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n" + more + CLOSE + b"\r\n"


@pytest.mark.parametrize(
    ("path", "status", "err_id"),
    [
        (b"/runs?status=%ff", 422, 17),
        (b"/runs/watch?status=%ff", 422, 17),
        (b"/dlq?tag=%ff", 422, 17),
        (b"/workers?scope=%ff", 422, 19),
        (b"/wheels/history?action=%ff", 422, 2),
        (b"/runs/" + b"x" * 5000, 404, 5),
        (b"/runs/a%00b", 404, 5),
        (b"/runs/a%0d%0ab", 404, 5),
        (b"/runs/%2e%2e", 404, 5),
        (b"/runs/..%2f..%2fetc", 404, 2),
        (b"/runs//", 404, 2),
        (b"/static/%2e%2e/%2e%2e/etc/passwd", 404, 2),
        (b"/wheels/..%5c..%5cx.whl", 404, 23),
        (b"/dlq/99999999999999999999999999", 404, 36),
        (b"/runs?limit=1e3", 422, 17),
        (b"/runs?updated_after=NaN", 422, 17),
        (b"/runs?" + b"&".join([b"tag=a"] * 101), 422, 17),
    ],
)
def test_odd_paths_and_queries(house: Gateway, path: bytes, status: int, err_id: int) -> None:
    """The contract's id for each route, in JSON."""
    found, body = ask(house, get(path))
    assert (found, json.loads(body)["err_id"]) == (status, f"ERR-PYOCO-{err_id:04d}"), body


ODD_TARGETS = [
    *(
        b"//runs",
        b"///runs",
        b"/%2Fruns",
        b"/./runs",
        b"runs",
        b"?x=1",
        b"*",
        b"//",
        b"/RUNS",
        b"/runs%20",
        b"/%5cruns",
    ),
    *(b"http://x/runs", b"http://x//runs", b"http:runs", b"http://health/runs", b"file:///runs"),
    *(b"/health/../runs", b"/health/%2e%2e/runs", b"/health;/runs", b"/health%3f/runs", b"/health%00/runs"),
    *(b"/static/../runs", b"/static/%2e%2e/runs", b"/static/..%2fruns", b"/static//runs", b"//static/../runs"),
]


def test_no_spelling_of_a_path_is_an_error_of_ours(house: Gateway) -> None:
    """It is the route that it names, or there is none, or one is told how it is spelled."""
    for target in ODD_TARGETS:
        assert ask(house, get(target))[0] in (200, 308, 404), target


def test_no_spelling_of_a_path_gets_around_the_api_keys(tmp_path: Path) -> None:
    """The gate sees what the router sees: without a key there is no list of runs, however it is asked for."""
    with (
        nats_server(tmp_path / "store") as nats,
        gateway(tmp_path, nats.url, PYOCO_HTTP_AUTH_MODE="api_key") as guarded,
    ):
        for target in ODD_TARGETS:
            status, body = ask(guarded, get(target))
            assert status in (308, 401, 404) or not body.startswith(b"["), (target, status, body[:100])
        assert ask(guarded, get(b"//runs"))[0] == 401
        assert ask(guarded, get(b"http://x/runs"))[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        b'{"flow_name": "f", "params": {"x": NaN}}',
        b'{"flow_name": "f", "params": {"x": -Infinity}}',
        b'{"flow_name": "f", "params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"flow_name": "f\\u0000"}',
        b'{"flow_name": "f", "tag": "a.b"}',
        b'{"flow_name": "f", "params": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"flow_name=f",
        b"[]",
        b"",
    ],
)
def test_odd_bodies(house: Gateway, body: bytes) -> None:
    """422, and in words."""
    status, answer = ask(house, post("/runs", body))
    assert (status, json.loads(answer)["err_id"]) == (422, "ERR-PYOCO-0002"), answer[:300]


def test_a_body_over_the_limit_of_its_route(house: Gateway) -> None:
    """413 with the route's own id; a wheel is refused by its length, before it is read."""
    assert ask(house, post("/runs", b" " * (16 * 2**20 + 1)))[0] == 413
    form = b"content-type: multipart/form-data; boundary=b\r\n"
    part = (
        b'--b\r\ncontent-disposition: form-data; name="workflow"; filename="f"\r\n\r\n'
        + b"#" * 300_000
        + b"\r\n--b--\r\n"
    )
    assert json.loads(ask(house, post("/runs/yaml", part, form))[1])["err_id"] == "ERR-PYOCO-0016"
    part = (
        b'--b\r\ncontent-disposition: form-data; name="wheel"; filename="a-1-py3-none-any.whl"\r\n\r\n'
        + b"#" * 2000
        + b"\r\n--b--\r\n"
    )
    assert ask(house, post("/wheels", part, form))[0] == 413
    assert ask(house, post("/runs/yaml", b"{}"))[0] == 422, "the wrong content type"


@pytest.mark.parametrize("head", [b"x: " + b"y" * 70_000 + b"\r\n", b"x: y\r\n" * 20_000])
def test_a_head_that_is_too_long(house: Gateway, head: bytes) -> None:
    """431, whether it is one header or many."""
    assert ask(house, get(b"/health", head))[0] == 431


def test_pipelined_requests_are_answered_in_their_order(house: Gateway) -> None:
    """Each gets its own answer."""
    two = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n"
    with dial(house) as connection:
        connection.sendall(two + get(b"/health"))
        statuses = re.findall(rb"HTTP/1.1 (\d+)", rest_of(connection))
    assert statuses == [b"200", b"404", b"200"]


def test_a_client_that_waits_for_100_continue_gets_it(house: Gateway) -> None:
    """And then its answer."""
    with dial(house) as connection:
        body = b'{"flow_name": "f", "tag": "nobody"}'
        head, _, _ = post("/runs", body, JSON + b"expect: 100-continue\r\n").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert b"HTTP/1.1 200" in rest_of(connection)


def watch(house: Gateway) -> socket.socket | None:
    """An open stream; None if there is no room for it, or none yet: the server has to notice who has gone."""
    connection = dial(house)
    connection.sendall(get(b"/runs/watch?timeout_sec=60"))
    if connection.recv(4096).startswith(b"HTTP/1.1 200"):
        return connection
    connection.close()
    return None


def test_idle_clients_make_room_and_busy_ones_do_not(house: Gateway) -> None:
    """Twice as many idle connections as there may be: others are served. As many streams: 503 in words."""
    idle = [dial(house) for _ in range(16)]
    # for a moment none of them makes room: its request may be on the way
    until(lambda: ask(house, get(b"/health"))[0], lambda status: status == 200)
    for each in idle:
        each.close()
    streams: list[socket.socket | None] = []
    try:
        for _ in range(8):
            streams.append(until(lambda: watch(house), lambda found: found is not None))
        status, body = ask(house, get(b"/health"))
        assert (status, json.loads(body)["err_id"]) == (503, "ERR-PYOCO-0041")
    finally:
        for stream in streams:
            assert stream is not None
            stream.close()


def test_all_is_well_afterwards(house: Gateway) -> None:
    """The same process answers as before, as soon as it has noticed that the streams are gone."""

    def status() -> int:
        with dial(house) as connection:
            connection.sendall(get(b"/ready"))
            return int((rest_of(connection).split() or [b"", b"503"])[1])

    until(status, lambda found: found == 200)
