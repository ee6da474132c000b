"""The key cache in virtual time: how soon the ring hears of what, through faults and reconnects."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.actors.following import RETRY_SEC
from pyoco_runtime.actors.key_cache import KeyCache
from pyoco_runtime.errors import InvalidApiKey, NatsUnavailable
from pyoco_runtime.key_ring import BLIND_SEC, KeyRing
from pyoco_runtime.model.api_key import ApiKey, Principal, new_key
from pyoco_runtime.model.wire import key_to
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import alone, in_virtual_time, settle_down


class Cached:
    """A gateway's ring and cache, and another process that makes and revokes keys."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway")
        self.admin = self.server.process("admin")
        self.hashes = 0
        self.ring = KeyRing(self.process.keys, None, self.hash)

    def cache(self) -> KeyCache:
        return KeyCache(self.ring, self.process.keys, self.process.link)

    async def hash(self, work: Callable[[], Principal | None], lane: str) -> Principal | None:
        self.hashes += 1
        await anyio.sleep(0.04)
        return work() if lane else None

    async def make(self) -> ApiKey:
        key, record = new_key("demo", now=1.0, pepper=None, randomness=secrets.token_bytes, iterations=1)
        await self.admin.keys.create(record)
        return key

    async def revoke(self, key: ApiKey) -> None:
        assert await self.admin.keys.revoke(key.key_id, 2.0)

    async def refused(self, key: ApiKey) -> None:
        with pytest.raises(InvalidApiKey):
            await self.ring.check(key.plain())


@in_virtual_time
async def test_a_revocation_elsewhere_is_heard_at_once() -> None:
    """No time passes, and nothing is read for keys that stay right."""
    world = Cached()
    async with alone(world.cache):
        key, other = await world.make(), await world.make()
        await world.ring.check(key.plain())
        await world.ring.check(other.plain())
        await anyio.sleep(10_000)
        before = anyio.current_time()
        await world.revoke(key)
        await settle_down()
        assert world.ring.known(key.plain()) is None
        assert world.ring.known(other.plain()) is not None
        assert anyio.current_time() == before
        await world.refused(key)
    assert world.hashes == 3


@pytest.mark.parametrize("how", ["removed", "damaged"])
@in_virtual_time
async def test_a_record_that_is_removed_or_damaged_lets_nobody_in(how: str) -> None:
    """As soon as that is heard; restored it does again."""
    world = Cached()
    async with alone(world.cache):
        key = await world.make()
        await world.ring.check(key.plain())
        entry = world.server.keys.get(key.key_id)
        assert entry is not None
        world.server.keys.write(key.key_id, None if how == "removed" else b"garbage", None)
        await settle_down()
        assert world.ring.known(key.plain()) is None
        await world.refused(key)
        world.server.keys.write(key.key_id, entry.value, None)
        await settle_down()
        assert await world.ring.check(key.plain())


@in_virtual_time
async def test_after_a_reconnect_nothing_is_hashed_anew_and_nothing_missed() -> None:
    """What was revoked while the link was down is refused as soon as it is up."""
    world = Cached()
    async with alone(world.cache):
        key, other = await world.make(), await world.make()
        await world.ring.check(key.plain())
        await world.ring.check(other.plain())
        world.process.disconnect()
        await settle_down()
        await world.revoke(key)
        await anyio.sleep(BLIND_SEC - 1)
        assert await world.ring.check(other.plain())
        await anyio.sleep(1)
        with pytest.raises(NatsUnavailable):
            await world.ring.check(other.plain())
        world.process.reconnect()
        await anyio.sleep(RETRY_SEC + 0.1)
        assert world.ring.known(key.plain()) is None
        assert world.ring.known(other.plain())
        await world.refused(key)
    assert world.hashes == 3


@pytest.mark.parametrize("operation", ["keys.watch", "keys.watch_next"])
@in_virtual_time
async def test_a_watch_that_fails_is_opened_again(operation: str) -> None:
    """However often, while the link says that all is well; meanwhile the ring asks the store in time."""
    world = Cached()
    async with alone(world.cache):
        key = await world.make()
        await world.ring.check(key.plain())
        world.server.faults.rate(operation, Lost.AFTER, 1.0)  # type: ignore[arg-type]  # one of two literals
        world.process.disconnect()
        world.process.reconnect()
        await settle_down()
        await world.revoke(key)
        await anyio.sleep(BLIND_SEC + 1)
        await world.refused(key)
        world.server.faults.calm()
        await anyio.sleep(RETRY_SEC + 0.1)
        later = await world.make()
        await world.ring.check(later.plain())
        await anyio.sleep(1000)
        assert world.ring.known(later.plain())


@in_virtual_time
async def test_a_restart_of_the_actor_loses_nothing() -> None:
    """The ring belongs to the tree; what changes between two lives is told by the next."""
    world = Cached()
    async with alone(world.cache) as tree:
        key, other = await world.make(), await world.make()
        await world.ring.check(key.plain())
        await world.ring.check(other.plain())
        tree.request_restart("root/it")
        await world.revoke(key)
        await anyio.sleep(5)
        assert world.ring.known(key.plain()) is None
        assert world.ring.known(other.plain())
    assert world.hashes == 2


@in_virtual_time
async def test_a_slow_load_lets_nobody_in_who_was_revoked() -> None:
    """News that come while the load is under way count when they come."""
    world = Cached()
    keys = [await world.make() for _ in range(10)]
    world.server.faults.rate("keys.watch_next", Slow(1.0), 1.0)
    async with alone(world.cache):
        for key in keys:
            await world.ring.check(key.plain())
            await world.revoke(key)
        await anyio.sleep(100)
        for key in keys:
            assert world.ring.known(key.plain()) is None
            await world.refused(key)


@in_virtual_time
async def test_an_idle_cache_asks_for_nothing() -> None:
    """One watch for a day: law 8."""
    world = Cached()
    opened = 0
    changes = world.process.keys.changes

    def counting() -> object:
        nonlocal opened
        opened += 1
        return changes()

    world.process.keys.changes = counting  # type: ignore[method-assign,assignment]
    async with alone(world.cache):
        await anyio.sleep(80_000)
    assert opened == 1


@in_virtual_time
async def test_an_admin_who_is_none_any_more() -> None:
    """Any change of the record counts, not only revocations."""
    world = Cached()
    key, record = new_key("ops", now=1.0, pepper=None, randomness=secrets.token_bytes, iterations=1, admin=True)
    async with alone(world.cache):
        world.server.keys.write(key.key_id, key_to(record), None)
        assert (await world.ring.check(key.plain())).is_admin
        world.server.keys.write(key.key_id, key_to(evolve(record, admin=False)), None)
        await settle_down()
        assert not (await world.ring.check(key.plain())).is_admin


def test_the_cache_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, and nobody listens any more."""
    worlds: list[Cached] = []

    def make() -> KeyCache:
        worlds.append(Cached())
        for n in range(3):
            worlds[-1].server.keys.write(f"key-000{n}", b"garbage", None)
        worlds[-1].server.faults.next("keys.watch", None, Lost.AFTER)
        worlds[-1].server.faults.next("keys.watch_next", None, Slow(1.0), Lost.AFTER)
        return worlds[-1].cache()

    stress_start_cancel(make)
    assert not any(world.server.keys._listeners for world in worlds)
