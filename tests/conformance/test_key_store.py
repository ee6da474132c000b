"""The API keys."""

from __future__ import annotations

import json
import uuid

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, Unreadable, UserError
from pyoco_runtime.model.api_key import ApiKeyRecord
from pyoco_runtime.model.wire import key_to
from pyoco_runtime.ports import CaughtUp, KeyChange, KeyChanged, KeyChanges, KeyRemoved, StoredKey
from tests.conformance.world import Process, World


def _record(created_at: float = 5.0) -> ApiKeyRecord:
    return ApiKeyRecord(
        key_id=uuid.uuid4().hex, tenant_id="demo", salt_b64="c2FsdA", hash_b64="aGFzaA", created_at=created_at
    )


async def _create(process: Process, record: ApiKeyRecord) -> StoredKey:
    return StoredKey(record, await process.keys.create(record))


async def _next_of(feed: KeyChanges, *key_ids: str) -> KeyChange:
    """The next news of these keys; the server is shared with other tests."""
    while True:
        change = await feed.next()
        match change:
            case KeyChanged(stored) if stored.record.key_id in key_ids:
                return change
            case KeyRemoved(key_id) if key_id in key_ids:
                return change
            case _:
                pass


async def _caught_up(feed: KeyChanges) -> list[KeyChange]:
    """All that the feed says up to that."""
    found: list[KeyChange] = []
    while not found or found[-1] != CaughtUp():
        found.append(await feed.next())
    return found[:-1]


async def test_a_key_is_stored_once(world: World) -> None:
    """With all its fields; its id is then taken, also for another process."""
    record = evolve(_record(), admin=True, extra={"note": [1]})
    async with world.process() as one, world.process() as other:
        stored = await _create(one, record)
        assert await one.keys.get(record.key_id) == stored
        assert await other.keys.get(record.key_id) == stored
        with pytest.raises(RevisionConflict):
            await other.keys.create(evolve(record, tenant_id="thief"))
        assert await one.keys.get(record.key_id) == stored


@pytest.mark.parametrize(
    "key_id", ["nobody-has-this", "", "short", "a.b.c.d.e", "*" * 8, ">" * 8, "a b c d e", "x" * 65]
)
async def test_a_key_that_is_not_there(world: World, key_id: str) -> None:
    """Also one that cannot be: nobody finds anything by a wildcard."""
    async with world.process() as process:
        await _create(process, _record())
        assert await process.keys.get(key_id) is None
        assert await process.keys.revoke(key_id, 1.0) is None


@pytest.mark.parametrize("key_id", ["", "short", "a.b.c.d.e", "*" * 8, "x" * 65])
async def test_a_key_that_cannot_be_is_not_made(world: World, key_id: str) -> None:
    """It would lie where nobody looks."""
    async with world.process() as process:
        with pytest.raises(UserError):
            await process.keys.create(evolve(_record(), key_id=key_id))


async def test_the_first_revocation_counts(world: World) -> None:
    """It keeps all other fields; a second one changes nothing, not even the revision."""
    record = evolve(_record(), extra={"note": [1]})
    async with world.process() as one, world.process() as other:
        stored = await _create(one, record)
        once = await other.keys.revoke(record.key_id, 7.0)
        assert once is not None
        assert once.record == evolve(record, revoked_at=7.0)
        assert once.revision > stored.revision
        assert await one.keys.revoke(record.key_id, 8.0) == once
        assert await one.keys.get(record.key_id) == once


async def test_two_revocations_at_once_are_one(world: World) -> None:
    """Both are told the same."""
    record = _record()
    found: list[StoredKey | None] = []
    async with world.process() as one, world.process() as other:
        await _create(one, record)

        async def revoke(process: Process, at: float) -> None:
            found.append(await process.keys.revoke(record.key_id, at))

        async with anyio.create_task_group() as group:
            for n in range(10):
                group.start_soon(revoke, one if n % 2 else other, 10.0 + n)
        assert len(found) == 10
        assert len({str(each) for each in found}) == 1
        assert found[0] == await one.keys.get(record.key_id)


async def test_a_damaged_record_says_so(world: World) -> None:
    """It is not taken for a key that is not there, is not overwritten, and is left out of the list."""
    record = _record()
    other = _record()
    async with world.process() as process:
        for data in (b"garbage", b"{}", key_to(other)):
            await world.write_key(record.key_id, data)
            with pytest.raises(Unreadable):
                await process.keys.get(record.key_id)
            with pytest.raises(Unreadable):
                await process.keys.revoke(record.key_id, 1.0)
            with pytest.raises(RevisionConflict):
                await process.keys.create(record)
            assert record.key_id not in [each.record.key_id for each in await process.keys.list()]


async def test_a_deleted_key_is_gone(world: World) -> None:
    """For get, revoke and list; its id may be used again."""
    record = _record()
    async with world.process() as process:
        await _create(process, record)
        await world.write_key(record.key_id, None)
        assert await process.keys.get(record.key_id) is None
        assert await process.keys.revoke(record.key_id, 1.0) is None
        assert record.key_id not in [each.record.key_id for each in await process.keys.list()]
        stored = await _create(process, record)
        assert await process.keys.get(record.key_id) == stored


async def test_the_list_is_newest_first(world: World) -> None:
    """Revoked ones are in it, each as it was written last."""
    records = [_record(created_at) for created_at in (3.0, 9.0, 6.0)]
    ids = [record.key_id for record in records]
    async with world.process() as process:
        for record in records:
            await _create(process, record)
        await process.keys.revoke(ids[0], 10.0)
        found = [each for each in await process.keys.list() if each.record.key_id in ids]
        assert [each.record.key_id for each in found] == [ids[1], ids[2], ids[0]]
        assert found[2] == await process.keys.get(ids[0])
        assert found[2].record.revoked_at == 10.0


async def test_records_of_the_peer_can_be_read(world: World) -> None:
    """As pyoco-server 0.5.1 writes them."""
    record = _record()
    raw = {
        "key_id": record.key_id,
        "tenant_id": "demo",
        "kdf": "pbkdf2_hmac_sha256",
        "iterations": 200000,
        "salt_b64": "c2FsdA",
        "hash_b64": "aGFzaA",
        "created_at": 5.0,
        "revoked_at": None,
    }
    await world.write_key(record.key_id, json.dumps(raw).encode())
    async with world.process() as process:
        found = await process.keys.get(record.key_id)
        assert found is not None
        assert found.record == record
        assert not found.record.admin


async def test_the_feed_tells_all_then_every_write(world: World) -> None:
    """First each key as it is, then that this was all, then news, whoever makes them."""
    first, second = _record(), _record()
    async with world.process() as one, world.process() as other:
        await _create(one, first)
        await one.keys.revoke(first.key_id, 6.0)
        stored = await one.keys.get(first.key_id)
        assert stored is not None
        async with one.keys.changes() as feed:
            assert KeyChanged(stored) in await _caught_up(feed)
            made = await _create(other, second)
            assert await _next_of(feed, second.key_id) == KeyChanged(made)
            revoked = await other.keys.revoke(second.key_id, 7.0)
            assert revoked is not None
            assert await _next_of(feed, second.key_id) == KeyChanged(revoked)
            await world.write_key(second.key_id, b"garbage")
            damaged = await _next_of(feed, second.key_id)
            assert isinstance(damaged, KeyRemoved)
            await world.write_key(second.key_id, None)
            gone = await _next_of(feed, second.key_id)
            assert isinstance(gone, KeyRemoved)
            assert gone.revision > damaged.revision > revoked.revision


async def test_a_new_feed_tells_that_a_key_is_gone(world: World) -> None:
    """Whoever knew it from before must hear of it."""
    record = _record()
    async with world.process() as process:
        await _create(process, record)
        await world.write_key(record.key_id, None)
        async with process.keys.changes() as feed:
            told = [each for each in await _caught_up(feed) if isinstance(each, KeyRemoved)]
            assert record.key_id in [each.key_id for each in told]


async def test_a_lost_connection_ends_the_feed(world: World) -> None:
    """At once, also for who waits; a new one tells what was missed."""
    record = _record()
    async with world.process() as one, world.process() as other:
        await _create(one, record)

        async def follow() -> None:
            async with one.keys.changes() as feed:
                await _caught_up(feed)
                waiting.set()
                with pytest.raises(NatsUnavailable):
                    await _next_of(feed, record.key_id)

        waiting = anyio.Event()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(follow)
                await waiting.wait()
                await one.disconnect()
        revoked = await other.keys.revoke(record.key_id, 7.0)
        assert revoked is not None
        await one.reconnect()
        async with one.keys.changes() as feed:
            assert KeyChanged(revoked) in await _caught_up(feed)


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """Every call, and works again after the reconnect."""
    record = _record()
    async with world.process() as process:
        await process.disconnect()
        with anyio.fail_after(2):
            with pytest.raises(NatsUnavailable):
                await process.keys.get(record.key_id)
            with pytest.raises(NatsUnavailable):
                await process.keys.create(record)
            with pytest.raises(NatsUnavailable):
                await process.keys.revoke(record.key_id, 1.0)
            with pytest.raises(NatsUnavailable):
                await process.keys.list()
            with pytest.raises(NatsUnavailable):
                async with process.keys.changes():
                    pass
        await process.reconnect()
        await _create(process, record)
