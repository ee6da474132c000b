"""API keys on a real nats-server: revocations between processes, real hashes, and the keys of the peer."""

from __future__ import annotations

import functools
import inspect
import json
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pyoco_runtime.actors.key_cache import KeyCache
from pyoco_runtime.actors.link import Link
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.errors import InvalidApiKey, NatsUnavailable
from pyoco_runtime.jetstream.key_store import NatsKeyStore
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.model.api_key import ApiKey, Principal, new_key, parse_key
from pyoco_runtime.ports import StoredKey
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.names import NAMES

PATIENCE_SEC = 20.0
A_MOMENT_SEC = 1.0  # about 1 ms in fact; the machine may be busy
PEPPER = "pepper-胡椒"
PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin"

needs_peer = pytest.mark.skipif(
    not (PEERS / "pyoco-server-admin").exists(), reason="pyoco-server 0.5.1 is not installed in .venv-peers"
)


def on_asyncio(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on asyncio, in real time."""

    @functools.wraps(test)
    def sync(**fixtures: object) -> None:
        async def bounded() -> None:
            with anyio.fail_after(PATIENCE_SEC):
                await test(**fixtures)

        anyio.run(bounded)

    sync.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]  # what pytest reads
    del sync.__dict__["__wrapped__"]
    return sync


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with nats_server(tmp_path / "store") as running:
        yield running


class TellingRing(KeyRing):
    """A ring that lets a test wait for news."""

    def __init__(self, store: NatsKeyStore, pepper: str | None) -> None:
        super().__init__(store, pepper)
        self.is_live = anyio.Event()
        self.revoked: dict[str, anyio.Event] = {}

    def note(self, stored: StoredKey) -> None:
        super().note(stored)
        if stored.record.revoked_at is not None:
            self.revoked.setdefault(stored.record.key_id, anyio.Event()).set()

    def end_load(self) -> None:
        super().end_load()
        self.is_live.set()

    def watch_lost(self) -> None:
        super().watch_lost()
        self.is_live = anyio.Event()

    async def wait_revoked(self, key: ApiKey) -> None:
        await self.revoked.setdefault(key.key_id, anyio.Event()).wait()


class Gateway:
    """The part of a gateway that knows keys, on its own connection."""

    def __init__(self, url: str) -> None:
        self.link = NatsLink(lambda: (url,), "gateway", NAMES)
        self.store = NatsKeyStore(self.link, NAMES.auth_bucket)
        self.ring = TellingRing(self.store, PEPPER)

    async def make(self, tenant: str = "demo") -> ApiKey:
        key, record = new_key(tenant, now=1.0, pepper=PEPPER, randomness=secrets.token_bytes)
        await self.store.create(record)
        return key

    async def refused(self, key: ApiKey) -> None:
        with pytest.raises(InvalidApiKey):
            await self.ring.check(key.plain())


@asynccontextmanager
async def gateway(server: RunningServer) -> AsyncIterator[Gateway]:
    made = Gateway(server.url)
    children = (
        ActorSpec("link", lambda: Link(made.link, retry_sec=0.1)),
        ActorSpec("key-cache", lambda: KeyCache(made.ring, made.store, made.link)),
    )
    async with Supervisor(SupervisorSpec("gateway", children)):
        await made.link.wait_up()
        await made.ring.is_live.wait()
        yield made


@on_asyncio
async def test_a_key_revoked_by_one_is_refused_by_the_other(server: RunningServer) -> None:
    """Within a moment, and from then on at once; the other keys stay known."""
    async with gateway(server) as one, gateway(server) as other:
        key, kept = await one.make(), await one.make("other")
        for each in (one, other):
            assert await each.ring.check(key.plain()) == Principal(key.key_id, "demo", False)
            assert await each.ring.check(kept.plain()) == Principal(kept.key_id, "other", False)
        assert other.ring.known(key.plain())
        await one.store.revoke(key.key_id, 2.0)
        with anyio.fail_after(A_MOMENT_SEC):
            await one.ring.wait_revoked(key)
            await other.ring.wait_revoked(key)
        for each in (one, other):
            assert each.ring.known(key.plain()) is None
            await each.refused(key)
            assert each.ring.known(kept.plain())


@on_asyncio
async def test_a_key_is_right_as_soon_as_it_is_made(server: RunningServer) -> None:
    """Also for another process, which has refused it a moment ago and may not have heard of it yet."""
    async with gateway(server) as one, gateway(server) as other:
        key, record = new_key("demo", now=1.0, pepper=PEPPER, randomness=secrets.token_bytes)
        fresh = await one.make()
        assert await other.ring.check(fresh.plain())
        await other.refused(key)
        await one.store.create(record)
        with anyio.fail_after(A_MOMENT_SEC):
            while other.ring._wrong._verdicts:  # noqa: ASYNC110 (the ring has no event for it)
                await anyio.sleep(0.001)
        assert await other.ring.check(key.plain())


@on_asyncio
async def test_a_server_that_dies_and_comes_back(server: RunningServer) -> None:
    """Known keys are let in meanwhile, others are told 503, and a revocation of that time is seen after it."""
    async with gateway(server) as one:
        key, kept, late = await one.make(), await one.make(), await one.make()
        await one.ring.check(key.plain())
        await one.ring.check(kept.plain())
        down = anyio.Event()
        one.link.on_change(down.set)
        await anyio.to_thread.run_sync(server.stop)
        await down.wait()
        assert await one.ring.check(kept.plain())
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await one.ring.check(late.plain())
        await anyio.to_thread.run_sync(server.start)
        async with gateway(server) as other:
            await other.store.revoke(key.key_id, 2.0)
        await one.ring.wait_revoked(key)
        await one.ring.is_live.wait()
        await one.refused(key)
        assert one.ring.known(kept.plain())
        assert await one.ring.check(late.plain())


@on_asyncio
async def test_the_loop_goes_on_while_keys_are_hashed(server: RunningServer) -> None:
    """Real hashes in real threads: twenty wrong keys at a time, and a known one is let in without waiting."""
    async with gateway(server) as one:
        key = await one.make()
        await one.ring.check(key.plain())
        at_work = 20

        async def present(n: int) -> None:
            nonlocal at_work
            await one.refused(ApiKey(key.key_id, f"{n:032d}"))
            at_work -= 1

        turns = 0
        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(present, n)
            while at_work:
                assert one.ring.known(key.plain())
                turns += 1
                await anyio.sleep(0.001)
        assert turns > 50


# -- the peer ---------------------------------------------------------------------------------------------------------


def environment(url: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYOCO_")},
        "PYOCO_NATS_URL": url,
        "PYOCO_AUTH_PEPPER": PEPPER,
        "PYOCO_LOAD_DOTENV": "0",
    }


async def peer(url: str, *command: str) -> str:
    """What a program of .venv-peers prints."""

    def run() -> str:
        done = subprocess.run(
            [PEERS / command[0], *command[1:]],
            env=environment(url),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SEC,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return await anyio.to_thread.run_sync(run)


async def admin(url: str, *arguments: str) -> Any:
    """What the peer's admin command says."""
    return json.loads(await peer(url, "pyoco-server-admin", "api-key", *arguments))


@needs_peer
@on_asyncio
async def test_keys_of_the_peer_are_right_here(server: RunningServer) -> None:
    """Made, listed and revoked by the peer's command, in a process of its own."""
    async with gateway(server) as one:
        made = await admin(server.url, "create", "--tenant", "acme")
        key = parse_key(made["api_key"])
        assert await one.ring.check(key.plain()) == Principal(made["key_id"], "acme", False)
        assert [each.record.tenant_id for each in await one.store.list()] == ["acme"]
        await admin(server.url, "revoke", "--key-id", key.key_id)
        with anyio.fail_after(A_MOMENT_SEC):
            await one.ring.wait_revoked(key)
        await one.refused(key)


VERIFY = """
import asyncio, json, sys
import nats
from pyoco_server.auth import ApiKeyRecord, make_kv_key_for_api_key_id, parse_api_key, verify_api_key
from pyoco_server.config import NatsBackendConfig

async def main():
    config = NatsBackendConfig.from_env()
    client = await nats.connect(config.nats_url)
    bucket = await client.jetstream().key_value(config.auth_kv_bucket)
    found = []
    for text in sys.argv[1:]:
        entry = await bucket.get(make_kv_key_for_api_key_id(parse_api_key(text)[0]))
        record = ApiKeyRecord.from_json_bytes(entry.value)
        found.append([record.tenant_id, verify_api_key(text, record=record, pepper=config.auth_pepper)])
    await client.close()
    print(json.dumps(found))

asyncio.run(main())
"""


@needs_peer
@on_asyncio
async def test_our_keys_are_right_there(server: RunningServer) -> None:
    """Read and verified by the peer's own code; a revoked one and a wrong secret are refused there too."""
    async with gateway(server) as one:
        key, gone = await one.make("acme"), await one.make("other")
        await one.store.revoke(gone.key_id, 2.0)
        wrong = ApiKey(key.key_id, "x" * 43)
        found = await peer(server.url, "python", "-c", VERIFY, key.plain(), gone.plain(), wrong.plain())
        assert json.loads(found) == [["acme", True], ["other", False], ["acme", False]]
        listed = await admin(server.url, "list")
        assert {(each["key_id"], each["revoked_at"]) for each in listed} == {(key.key_id, None), (gone.key_id, 2.0)}
