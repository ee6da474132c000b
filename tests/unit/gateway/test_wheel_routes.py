"""The routes of the wheels, without a socket, on the store in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from quart import Quart, g
from quart.testing import connections

from pyoco_runtime.gateway.app import create_app
from pyoco_runtime.gateway.routes.wheels import wheel_routes
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.wheel_shop import WheelShop

MAX_BYTES = 1_000_000
DATA = bytes(range(256)) * 1200
NAME = "demo-1.0-py3-none-any.whl"
FORM = "multipart/form-data; boundary=edge"
Part = tuple[str, str | None, bytes]


class Nothing:
    """A process that lacks nothing."""

    def missing(self) -> tuple[str, ...]:
        return ()


class Place:
    """An app and the server behind it."""

    def __init__(self) -> None:
        self.server = MemoryJetStream(clock=lambda: 1_800_000_000.5)
        self.process = self.server.process("gateway")
        self.principal: Principal | None = None
        shop = WheelShop(self.process.wheels, self.process.wheel_history, self.server.clock, max_bytes=MAX_BYTES)
        self.app: Quart = create_app(Nothing(), [wheel_routes(shop)])
        self.app.before_request(self._identify)
        self.client = self.app.test_client()

    async def _identify(self) -> None:
        g.principal = self.principal

    async def upload(self, *parts: Part, content_type: str = FORM, body: bytes | None = None) -> tuple[int, Any]:
        data = form(parts) if body is None else body
        answer = await self.client.post("/wheels", headers={"content-type": content_type}, data=data)
        return answer.status_code, await answer.get_json()

    async def get(self, path: str) -> tuple[int, Any]:
        answer = await self.client.get(path)
        return answer.status_code, await answer.get_json()


def form(parts: Sequence[Part], end: bytes = b"--edge--\r\n") -> bytes:
    body = b""
    for name, file_name, data in parts:
        named = f'; filename="{file_name}"' if file_name is not None else ""
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + data + b"\r\n"
    return body + end


def play(test: Callable[[Place], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Place())

    anyio.run(main)


@pytest.mark.parametrize("is_last", [True, False], ids=["file last", "file first"])
def test_an_upload_is_answered_with_the_artifact(is_last: bool) -> None:
    """Whatever the order of the fields; then it is listed, and read byte for byte."""

    async def test(place: Place) -> None:
        fields: list[Part] = [("tags", None, b"a, b"), ("replace", None, b"false"), ("else", None, b"x")]
        file: list[Part] = [("wheel", NAME, DATA)]
        status, found = await place.upload(*(fields + file if is_last else file + fields))
        assert status == 200
        sha256 = hashlib.sha256(DATA)
        wanted = {"name": NAME, "size_bytes": len(DATA), "bucket": "pyoco_wheels", "tags": ["a", "b"]}
        assert wanted.items() <= found.items()
        assert (found["sha256_hex"], found["modified"]) == (sha256.hexdigest(), 1_800_000_000.5)
        assert found["digest"] == f"SHA-256={found['sha256_b64']}"
        assert found["mtime"].startswith("2027-01-15T08:00:00.5")
        assert await place.get("/wheels") == (200, [found])
        answer = await place.client.get(f"/wheels/{NAME}")
        assert await answer.get_data() == DATA
        assert answer.headers["content-disposition"] == f'attachment; filename="{NAME}"'
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-length"] == str(len(DATA))

    play(test)


def test_history_tells_who_did_it() -> None:
    """The key and where the request came from; newest first, by wheel, by action, so many."""

    async def test(place: Place) -> None:
        place.principal = Principal("key-1", "tenant-1", False)
        await place.upload(("wheel", NAME, DATA))
        headers = {"x-forwarded-for": "1.2.3.4", "x-real-ip": "1.2.3.5", "user-agent": "me"}
        answer = await place.client.delete(f"/wheels/{NAME}", headers=headers)
        assert (answer.status_code, await answer.get_json()) == (200, {"name": NAME, "deleted": True})
        _, found = await place.get("/wheels/history")
        assert [event["action"] for event in sorted(found, key=lambda event: str(event["action"]))] == [
            "delete",
            "upload",
        ]
        _, (event,) = await place.get(f"/wheels/history?action=DELETE&wheel_name={NAME}&limit=1")
        assert event.pop("event_id")
        assert event == {
            "occurred_at": 1_800_000_000.5,
            "action": "delete",
            "wheel_name": NAME,
            "tags": [],
            "size_bytes": len(DATA),
            "sha256_hex": hashlib.sha256(DATA).hexdigest(),
            "replace": None,
            "actor": {"tenant_id": "tenant-1", "api_key_id": "key-1"},
            "source": {
                "remote_addr": "<local>",
                "x_forwarded_for": "1.2.3.4",
                "x_real_ip": "1.2.3.5",
                "user_agent": "me",
                "host": "localhost",
                "scheme": "http",
            },
        }

    play(test)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "action=replace", "wheel_name=a/b.whl", "limit=1e2"]
)
def test_a_senseless_history_query_is_422(query: str) -> None:
    """With the id of an invalid request."""

    async def test(place: Place) -> None:
        status, found = await place.get(f"/wheels/history?{query}")
        assert (status, found["err_id"]) == (422, "ERR-PYOCO-0002")

    play(test)


WHEEL: Part = ("wheel", NAME, DATA)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("tags", None, b"a")], "the file is missing"),
        ([("wheel", None, DATA)], "must be a file"),
        ([("wheel", "demo.whl", DATA)], "invalid wheel filename"),
        ([("wheel", "../../etc/passwd", DATA)], "invalid wheel name"),
        ([("wheel", "", DATA)], "invalid wheel name"),
        ([WHEEL, WHEEL], "is there twice"),
        ([WHEEL, ("tags", None, b"a b")], "invalid wheel tags"),
        ([WHEEL, ("tags", None, b"\xff")], "is not UTF-8"),
        ([WHEEL, ("replace", None, b"perhaps")], "replace: must be true or false"),
        ([WHEEL, ("tags", None, bytes(9000))], "has more than 8192 bytes"),
        ([WHEEL] + [("x", None, b"")] * 100, "more than 100 parts"),
    ],
)
def test_a_form_that_makes_no_sense_is_422(parts: list[Part], text: str) -> None:
    """It says what is wrong, and nothing of the file stays, wherever in the form the fault was."""

    async def test(place: Place) -> None:
        status, found = await place.upload(*parts)
        assert (status, found["err_id"]) == (422, "ERR-PYOCO-0002")
        assert text in found["detail"]
        assert place.server.shelf.chunks == {}

    play(test)


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("application/json", b"{}", "send multipart/form-data"),
        ("multipart/form-data", form([WHEEL]), "send multipart/form-data"),
        (FORM, form([WHEEL])[:200_000], "cannot be read"),
        (FORM, form([WHEEL], end=b""), "cannot be read"),
        (FORM, b"", "cannot be read"),
        (FORM, bytes(200_000), "before a part begins"),
        (FORM, b"--edge\r\nX: " + b"y" * 200_000, "before a part begins"),
        (FORM, b"--edge\r\nX: \xff\r\n\r\n", "cannot be read"),
        (FORM, b"--edge\r\nX: y\r\n\r\n", "cannot be read"),
        (FORM, b"--edge--\r\n", "the file is missing"),
    ],
)
def test_a_body_that_is_no_form_is_422(content_type: str, body: bytes, text: str) -> None:
    """Cut short, too long before the first part, or something else altogether."""

    async def test(place: Place) -> None:
        status, found = await place.upload(content_type=content_type, body=body)
        assert (status, found["err_id"]) == (422, "ERR-PYOCO-0002")
        assert text in found["detail"]
        assert place.server.shelf.chunks == {}

    play(test)


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 3 * MAX_BYTES], ids=["found out late", "known before"])
def test_a_wheel_that_is_too_large_is_413(size: int) -> None:
    """With the id of an invalid request, as the contract has it."""

    async def test(place: Place) -> None:
        status, found = await place.upload(("wheel", NAME, bytes(size)))
        assert (status, found["err_id"]) == (413, "ERR-PYOCO-0002")
        assert found["detail"].startswith("wheel too large")
        assert place.server.shelf.chunks == {}

    play(test)


def test_an_old_version_is_409() -> None:
    """With the newest in the text."""

    async def test(place: Place) -> None:
        await place.upload(WHEEL)
        for name in (NAME, "demo-0.9-py3-none-any.whl"):
            status, found = await place.upload(("wheel", name, DATA))
            assert (status, found["err_id"]) == (409, "ERR-PYOCO-0022")
            assert "the newest demo in the store is 1.0" in found["detail"]

    play(test)


def test_a_wheel_that_is_not_there_is_404() -> None:
    """To read and to delete."""

    async def test(place: Place) -> None:
        for ask in (place.client.get, place.client.delete):
            for name in (NAME, "x", "%2e%2e", "a%00.whl"):
                answer = await ask(f"/wheels/{name}")
                found = await answer.get_json()
                assert (answer.status_code, found["err_id"]) == (404, "ERR-PYOCO-0023")
                assert found["detail"].startswith("wheel not found")

    play(test)


def test_nats_away_is_503() -> None:
    """On every route."""

    async def test(place: Place) -> None:
        place.process.disconnect()
        for path in ("/wheels", "/wheels/history", f"/wheels/{NAME}"):
            status, found = await place.get(path)
            assert (status, found["err_id"]) == (503, "ERR-PYOCO-0003")
        status, found = await place.upload(WHEEL)
        assert (status, found["err_id"]) == (503, "ERR-PYOCO-0003")

    play(test)


def test_a_client_that_goes_away_leaves_nothing() -> None:
    """Its upload is thrown away as soon as it is gone."""

    async def test(place: Place) -> None:
        body = form([WHEEL], end=b"")
        async with place.client.request("/wheels", method="POST", headers={"content-type": FORM}) as connection:
            assert isinstance(connection, connections.TestHTTPConnection)
            await connection.send(body)
            with anyio.fail_after(5):
                while not place.server.shelf.chunks:
                    await anyio.lowlevel.checkpoint()
            await connection.disconnect()
            with anyio.fail_after(5):
                while place.server.shelf.chunks:
                    await anyio.lowlevel.checkpoint()
        assert await place.get("/wheels") == (200, [])

    play(test)
