"""The gate: which paths are open, and who is let in."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from pyoco_runtime.errors import ApiKeyRequired, InvalidApiKey, NatsUnavailable, PyocoError
from pyoco_runtime.gateway.auth import Gate, Headers, is_open
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.model.api_key import ApiKey, Principal, new_key
from pyoco_runtime.model.wire import key_to
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from tests.unit.actors.support import in_virtual_time

OPEN = ["/", "/health", "/ready", "/static/app.js", "/static/a/b.css", "/static/", "/static/a..b"]
CLOSED = [
    "",
    "//",
    "/runs",
    "/runs/1",
    "/metrics",
    "/docs",
    "/openapi.json",
    "/static",
    "/health/",
    "/healthy",
    "/Health",
    "/ready/x",
    "//health",
    "/static/../runs",
    "/static/..",
    "/static/a/../../runs",
    "/staticx/a",
    "/runs/static/a",
]


class Door:
    """A ring on a store in memory with one key, whose hashes are counted."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway")
        self.hashes = 0
        self.ring = KeyRing(self.process.keys, None, self.hash)
        self.key, record = new_key("demo", now=1.0, pepper=None, randomness=secrets.token_bytes, iterations=1)
        self.server.keys.write(record.key_id, key_to(record), None)
        self.ring.begin_load()
        self.ring.end_load()

    async def hash(self, work: Callable[[], Principal | None], lane: str) -> Principal | None:
        self.hashes += 1
        return work() if lane else None


def headers_of(key: ApiKey) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"localhost"), (b"x-api-key", key.plain().encode()), (b"accept", b"*/*")]


@pytest.mark.parametrize(("path", "right"), [*((each, True) for each in OPEN), *((each, False) for each in CLOSED)])
@in_virtual_time
async def test_which_paths_are_open(path: str, right: bool) -> None:
    """These need no key and look at none; all others do, also those that only look like them."""
    gate = Gate(Door().ring, "X-API-Key")
    assert is_open(path) is right
    if right:
        assert await gate.admit([], path) is None
        assert await gate.admit([(b"x-api-key", b"nonsense")], path) is None
    else:
        with pytest.raises(ApiKeyRequired):
            await gate.admit([], path)


@pytest.mark.parametrize("path", [*OPEN, *CLOSED])
@in_virtual_time
async def test_without_a_ring_everything_is_open(path: str) -> None:
    """Auth mode none; a key that comes all the same is nobody's."""
    gate = Gate(None, "X-API-Key")
    assert await gate.admit([], path) is None
    assert await gate.admit([(b"x-api-key", b"nonsense")], path) is None


@pytest.mark.parametrize("header", ["X-API-Key", "x-api-key", "X-Api-Key"])
@in_virtual_time
async def test_a_right_key_is_let_in(header: str) -> None:
    """However the header is written in the settings; the hash is made once."""
    door = Door()
    gate = Gate(door.ring, header)
    for _ in range(3):
        assert await gate.admit(headers_of(door.key), "/runs") == Principal(door.key.key_id, "demo", False)
    assert door.hashes == 1


@in_virtual_time
async def test_the_header_has_the_name_that_was_chosen() -> None:
    """And no other."""
    door = Door()
    gate = Gate(door.ring, "Authorization-Key")
    assert await gate.admit([(b"authorization-key", door.key.plain().encode())], "/runs") is not None
    with pytest.raises(ApiKeyRequired):
        await gate.admit(headers_of(door.key), "/runs")


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([], ApiKeyRequired),
        ([(b"x-api-key", b"")], ApiKeyRequired),
        ([(b"x-api-keys", b"pyoco_abcdefgh.0123456789abcdef")], ApiKeyRequired),
        ([(b"authorization", b"pyoco_abcdefgh.0123456789abcdef")], ApiKeyRequired),
        ([(b"x-api-key", b"nonsense")], InvalidApiKey),
        ([(b"x-api-key", b"\xff\xfe\x00")], InvalidApiKey),
        ([(b"x-api-key", b"x" * 100_000)], InvalidApiKey),
        ([(b"x-api-key", b"pyoco_abcdefgh.0123456789abcdef")], InvalidApiKey),
        ([(b"x-api-key", b"a"), (b"x-api-key", b"b")], InvalidApiKey),
    ],
)
@in_virtual_time
async def test_who_is_refused(headers: Headers, error: type[PyocoError]) -> None:
    """Without a key 401, with a wrong one 403, on the next try again."""
    door = Door()
    gate = Gate(door.ring, "X-API-Key")
    for _ in range(2):
        with pytest.raises(error):
            await gate.admit(headers, "/runs")


@in_virtual_time
async def test_two_keys_are_no_key() -> None:
    """Also if both are right: somebody in between may have looked at the other one."""
    door = Door()
    with pytest.raises(InvalidApiKey):
        await Gate(door.ring, "X-API-Key").admit(headers_of(door.key) * 2, "/runs")


@in_virtual_time
async def test_nats_away_is_no_refusal() -> None:
    """503 for a key that is not known; open paths do not mind."""
    door = Door()
    door.process.disconnect()
    gate = Gate(door.ring, "X-API-Key")
    with pytest.raises(NatsUnavailable):
        await gate.admit(headers_of(door.key), "/runs")
    assert await gate.admit([], "/health") is None


@in_virtual_time
async def test_a_known_key_does_not_wait() -> None:
    """The coroutine ends in its first step: no other request comes in between."""
    door = Door()
    gate = Gate(door.ring, "X-API-Key")
    await gate.admit(headers_of(door.key), "/runs")
    step = gate.admit(headers_of(door.key), "/runs")
    with pytest.raises(StopIteration) as ended:
        step.send(None)
    assert ended.value.value == Principal(door.key.key_id, "demo", False)
