"""The key ring in virtual time: what is hashed, what is read, and who is let in."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
from collections.abc import Callable
from typing import Literal

import anyio
import pytest
from anyio.abc import TaskGroup
from attrs import define, evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from pyoco_runtime import key_ring
from pyoco_runtime.errors import ApiKeyRequired, InvalidApiKey, NatsUnavailable
from pyoco_runtime.key_ring import BLIND_SEC, NOBODY, RIGHT, STRANGERS, WRONG, WRONG_SEC, KeyRing
from pyoco_runtime.model.api_key import ApiKey, ApiKeyRecord, Principal, new_key
from pyoco_runtime.model.wire import key_to
from pyoco_runtime.ports import StoredKey
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.actors.support import in_virtual_time, settle_down

HASH_SEC = 0.04  # of virtual time; about what a real one takes


class Ring:
    """A ring on a store in memory, whose hashes and reads are counted."""

    def __init__(self, hash_sec: float = HASH_SEC) -> None:
        self.server = MemoryJetStream()
        self.process = self.server.process("gateway")
        self.hash_sec = hash_sec
        self.hashed: list[str] = []
        self.finished = 0
        self.reads = 0
        self.ring = KeyRing(self, None, self.hash)  # type: ignore[arg-type]  # of a store, the ring only reads

    async def get(self, key_id: str) -> StoredKey | None:
        self.reads += 1
        return await self.process.keys.get(key_id)

    async def hash(self, work: Callable[[], Principal | None], lane: str) -> Principal | None:
        self.hashed.append(lane)
        if self.hash_sec:
            await anyio.sleep(self.hash_sec)
        self.finished += 1
        return work() if lane != NOBODY else None  # the real one has its test, and takes real time

    def make(self, tenant: str = "demo", *, admin: bool = False) -> ApiKey:
        """A new key, stored."""
        key, record = new_key(tenant, now=1.0, pepper=None, randomness=secrets.token_bytes, admin=admin, iterations=1)
        self.write(record)
        return key

    def write(self, record: ApiKeyRecord) -> None:
        self.server.keys.write(record.key_id, key_to(record), None)

    def stored(self, key: ApiKey) -> StoredKey:
        found = self.process.keys._read(key.key_id)
        assert found is not None
        return found

    def revoke(self, key: ApiKey) -> StoredKey:
        """Revoke it in the store, and tell nobody."""
        self.write(evolve(self.stored(key).record, revoked_at=2.0))
        return self.stored(key)

    def watch(self) -> None:
        """Be told of everything that is stored, as the actor does."""
        self.ring.begin_load()
        for entry in self.server.keys.entries():
            found = self.process.keys._read(entry.key)
            if found is not None:
                self.ring.note(found)
            else:
                self.ring.forget(entry.key)
        self.ring.end_load()

    async def refused(self, presented: str) -> None:
        with pytest.raises(InvalidApiKey):
            await self.ring.check(presented)


def principal(key: ApiKey, tenant: str = "demo") -> Principal:
    return Principal(key.key_id, tenant, False)


def wrong(key: ApiKey, n: int = 0) -> str:
    return f"pyoco_{key.key_id}.{n:032d}"


def stranger(n: int) -> str:
    return f"pyoco_{n:024d}.{n:032d}"


# -- one hash for each key --------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_key_is_hashed_once() -> None:
    """And read once, while the watch is live."""
    world = Ring()
    key = world.make()
    world.watch()
    assert world.ring.known(key.plain()) is None
    for _ in range(100):
        assert await world.ring.check(key.plain()) == principal(key)
        await anyio.sleep(100)
    assert world.ring.known(key.plain()) == principal(key)
    assert (world.hashed, world.reads) == ([key.key_id], 1)


@in_virtual_time
async def test_a_wrong_key_is_hashed_once_too() -> None:
    """A wrong secret, and an id that nobody has; the latter on the lane of all such."""
    world = Ring()
    key = world.make()
    world.watch()
    for presented in (wrong(key), stranger(1)):
        for _ in range(10):
            await world.refused(presented)
            assert world.ring.known(presented) is None
            await anyio.sleep(100)
    assert (world.hashed, world.reads) == ([key.key_id, NOBODY], 2)


@in_virtual_time
async def test_who_presents_a_key_while_it_is_hashed_shares_the_hash() -> None:
    """Right or wrong, a hundred at a time."""
    world = Ring()
    key = world.make()
    world.watch()
    let_in: list[Principal] = []
    refused: list[str] = []

    async def present(text: str) -> None:
        try:
            let_in.append(await world.ring.check(text))
        except InvalidApiKey:
            refused.append(text)

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(present, key.plain())
            group.start_soon(present, wrong(key))
            await anyio.sleep(HASH_SEC / 200)
    assert let_in == [principal(key)] * 100
    assert refused == [wrong(key)] * 100
    assert (world.hashed, world.reads) == ([key.key_id] * 2, 2)


@pytest.mark.parametrize("text", [None, ""])
@in_virtual_time
async def test_no_key_is_not_a_wrong_key(text: str | None) -> None:
    """401, not 403."""
    with pytest.raises(ApiKeyRequired):
        await Ring().ring.check(text)


@pytest.mark.parametrize("text", ["nonsense", "x" * 1_000_000, "pyoco_abcdefgh.\ud8000123456789abcdef", "é" * 40])
@in_virtual_time
async def test_what_is_no_key_costs_nothing(text: str) -> None:
    """No read, no hash, no place in memory."""
    world = Ring()
    assert world.ring.known(text) is None
    await world.refused(text)
    assert (world.hashed, world.reads) == ([], 0)
    assert not world.ring._wrong._verdicts


@in_virtual_time
async def test_presented_keys_are_not_kept() -> None:
    """No part of the ring holds the key or its secret: what is kept is a digest under a key of this process."""
    world = Ring()
    key = world.make()
    await world.ring.check(key.plain())
    held = [*world.ring._right._verdicts.items(), *world.ring._right._of.items()]
    assert held
    assert key.secret not in repr(held)
    other = KeyRing(world, None, world.hash)  # type: ignore[arg-type]
    assert other._digest(key.plain()) != world.ring._digest(key.plain())


@in_virtual_time
async def test_a_record_that_cannot_be_read_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    """The log names the key id, and it is right again when the record is."""
    world = Ring()
    key = world.make()
    record = world.stored(key).record
    world.server.keys.write(key.key_id, b"garbage", None)
    with caplog.at_level(logging.WARNING):
        await world.refused(key.plain())
    assert [vars(entry)["api_key_id"] for entry in caplog.records] == [key.key_id]
    assert key.secret not in caplog.text
    world.write(record)
    world.watch()
    assert await world.ring.check(key.plain()) == principal(key)


# -- revocation -------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_revocation_counts_at_once() -> None:
    """From the moment that the ring is told, for this key and no other; refused then without another read."""
    world = Ring()
    key, other = world.make(), world.make("other")
    world.watch()
    await world.ring.check(key.plain())
    await world.ring.check(other.plain())
    told = world.revoke(key)
    assert world.ring.known(key.plain()) is not None
    world.ring.note(told)
    assert world.ring.known(key.plain()) is None
    assert world.ring.known(other.plain()) == principal(other, "other")
    await world.refused(key.plain())
    reads = world.reads
    await world.refused(key.plain())
    assert world.reads == reads


@pytest.mark.parametrize("how", ["revoked", "removed"])
@pytest.mark.parametrize("after_sec", [0.0, HASH_SEC / 2, HASH_SEC])
@in_virtual_time
async def test_a_revocation_while_the_hash_is_under_way(how: str, after_sec: float) -> None:
    """All who wait for it are refused, whatever the hash says: also those who have not woken yet."""
    world = Ring()
    key = world.make()
    world.watch()
    told = False
    outcomes: list[tuple[bool, bool]] = []

    async def present() -> None:
        try:
            await world.ring.check(key.plain())
            outcomes.append((told, True))
        except InvalidApiKey:
            outcomes.append((told, False))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(present)
        await settle_down()
        await anyio.sleep(after_sec)
        told = True
        if how == "revoked":
            world.ring.note(world.revoke(key))
        else:
            world.server.keys.write(key.key_id, None, None)
            world.ring.forget(key.key_id)
    assert len(outcomes) == 5
    assert (True, True) not in outcomes
    if after_sec < HASH_SEC:
        assert outcomes == [(True, False)] * 5


@in_virtual_time
async def test_a_waiter_that_has_not_woken_hears_of_the_revocation() -> None:
    """The check is over and right, and before the others wake up the record is revoked."""
    world = Ring(hash_sec=0)
    key = world.make()
    world.watch()
    outcomes: list[str] = []
    world.server.faults.next("keys.get", Slow(1.0))

    async def first() -> None:
        await world.ring.check(key.plain())
        outcomes.append("in")
        world.ring.note(world.revoke(key))  # in the same step of the loop as the end of the check

    async def second() -> None:
        with pytest.raises(InvalidApiKey):
            await world.ring.check(key.plain())
        outcomes.append("refused")

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await settle_down()
        for _ in range(3):
            group.start_soon(second)
    assert outcomes == ["in", "refused", "refused", "refused"]


@in_virtual_time
async def test_a_key_that_comes_into_being_is_let_in() -> None:
    """Though it was refused before."""
    world = Ring()
    key = world.make()
    record = world.stored(key).record
    world.server.keys.write(key.key_id, None, None)
    world.watch()
    await world.refused(key.plain())
    world.write(record)
    world.ring.note(world.stored(key))
    assert await world.ring.check(key.plain()) == principal(key)


@in_virtual_time
async def test_a_record_that_changes_changes_who_it_is() -> None:
    """An admin who is none any more."""
    world = Ring()
    key = world.make(admin=True)
    world.watch()
    assert (await world.ring.check(key.plain())).is_admin
    world.write(evolve(world.stored(key).record, admin=False))
    world.ring.note(world.stored(key))
    assert not (await world.ring.check(key.plain())).is_admin


@in_virtual_time
async def test_news_that_change_nothing_cost_nothing() -> None:
    """A new load of ten thousand known keys hashes and reads none of them anew."""
    world = Ring()
    keys = [world.make() for _ in range(20)]
    world.watch()
    for key in keys:
        await world.ring.check(key.plain())
    world.ring.watch_lost()
    world.watch()
    assert all(world.ring.known(key.plain()) for key in keys)
    assert (len(world.hashed), world.reads) == (20, 20)


@in_virtual_time
async def test_a_bucket_that_was_made_anew_counts() -> None:
    """Its revisions begin at 1 again: a revocation there is no old news."""
    world = Ring()
    for _ in range(5):
        world.make()
    key = world.make()
    world.watch()
    await world.ring.check(key.plain())
    revocation = StoredKey(evolve(world.stored(key).record, revoked_at=2.0), 1)
    world.ring.note(revocation)
    assert world.ring.known(key.plain()) is None


@in_virtual_time
async def test_a_key_that_a_load_does_not_mention_is_read_again() -> None:
    """The bucket was purged while nobody looked: no marker tells of it."""
    world = Ring()
    key = world.make()
    world.watch()
    await world.ring.check(key.plain())
    world.ring.watch_lost()
    world.server.keys._entries.clear()
    world.watch()
    assert world.ring.known(key.plain()) is None
    await world.refused(key.plain())


# -- without the watch ------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_without_a_watch_every_check_reads_and_none_hashes_again() -> None:
    """A revocation is seen by the next check, though nobody told."""
    world = Ring()
    key = world.make()
    for n in range(1, 6):
        assert await world.ring.check(key.plain()) == principal(key)
        assert (len(world.hashed), world.reads) == (1, n)
        assert world.ring.known(key.plain()) is None
    world.revoke(key)
    await world.refused(key.plain())


@in_virtual_time
async def test_a_lost_watch_is_trusted_for_a_while() -> None:
    """Then the record is read for every check, and not hashed again; losing it twice does not make it longer."""
    world = Ring()
    key = world.make()
    world.watch()
    await world.ring.check(key.plain())
    world.ring.watch_lost()
    await anyio.sleep(BLIND_SEC / 2)
    world.ring.begin_load()  # and lost again before it had told all
    world.ring.watch_lost()
    await anyio.sleep(BLIND_SEC / 2 - 1)
    assert world.ring.known(key.plain()) == principal(key)
    assert world.reads == 1
    await anyio.sleep(1)
    assert world.ring.known(key.plain()) is None
    for n in (2, 3):
        await world.ring.check(key.plain())
        assert (len(world.hashed), world.reads) == (1, n)
    world.watch()
    assert world.ring.known(key.plain()) == principal(key)


@in_virtual_time
async def test_a_wrong_key_is_trusted_to_be_wrong_for_less_time() -> None:
    """A key that was just made must not be refused for long where nobody tells of it."""
    world = Ring()
    await world.refused(stranger(1))
    await anyio.sleep(WRONG_SEC / 2)
    await world.refused(stranger(1))
    assert world.reads == 1
    await anyio.sleep(WRONG_SEC)
    await world.refused(stranger(1))
    assert (world.hashed, world.reads) == ([NOBODY], 2)


@in_virtual_time
async def test_after_a_reconnect_a_wrong_key_is_read_once_more() -> None:
    """No load tells of an id that nobody has; once it was read again, it is trusted as before."""
    world = Ring()
    world.watch()
    await world.refused(stranger(1))
    world.ring.watch_lost()
    world.watch()
    for _ in range(5):
        await anyio.sleep(WRONG_SEC)
        await world.refused(stranger(1))
    assert (world.hashed, world.reads) == ([NOBODY], 2)


@in_virtual_time
async def test_what_was_read_before_the_watch_stood_is_not_trusted_after() -> None:
    """A revocation between the read and the first news of the watch, of which the watch tells before the read ends."""
    world = Ring()
    key = world.make()
    world.server.faults.next("keys.get", Slow(5.0))
    async with anyio.create_task_group() as group:
        group.start_soon(world.refused, key.plain())
        await anyio.sleep(0.1)
        world.revoke(key)
        world.watch()


@in_virtual_time
async def test_nats_away_is_said_so() -> None:
    """To all who wait, for a key that is not known; one that is known is let in for a while."""
    world = Ring()
    key, other = world.make(), world.make()
    world.watch()
    await world.ring.check(key.plain())
    problems: list[str] = []

    async def present() -> None:
        with pytest.raises(NatsUnavailable) as caught:
            await world.ring.check(other.plain())
        problems.append(str(caught.value))

    world.server.faults.next("keys.get", Lost.BEFORE)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(present)
    assert len(problems) == 3
    world.process.disconnect()
    world.ring.watch_lost()
    await present()
    assert await world.ring.check(key.plain()) == principal(key)
    await anyio.sleep(BLIND_SEC)
    with pytest.raises(NatsUnavailable):
        await world.ring.check(key.plain())
    world.process.reconnect()
    assert await world.ring.check(key.plain()) == principal(key)
    assert await world.ring.check(other.plain()) == principal(other)


# -- who is cut off ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_sec", [0.0, HASH_SEC / 2])
@in_virtual_time
async def test_who_is_cancelled_leaves_the_check_to_the_next(after_sec: float) -> None:
    """One of the others takes its place; nothing is left behind."""
    world = Ring()
    key = world.make()
    world.watch()
    let_in: list[Principal] = []

    async def present() -> None:
        let_in.append(await world.ring.check(key.plain()))

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(present)
                await settle_down()
                for _ in range(3):
                    group.start_soon(present)
                await settle_down()
                await anyio.sleep(after_sec)
                scope.cancel()
    assert let_in == [principal(key)] * 3
    assert world.finished == 1
    assert not world.ring._checks


@in_virtual_time
async def test_who_waits_may_be_cancelled() -> None:
    """The one who checks does not mind."""
    world = Ring()
    key = world.make()
    async with anyio.create_task_group() as group:
        group.start_soon(world.ring.check, key.plain())
        await settle_down()
        with anyio.move_on_after(HASH_SEC / 2) as scope:
            await world.ring.check(key.plain())
        assert scope.cancelled_caught
    assert len(world.hashed) == world.finished == 1


@in_virtual_time
async def test_a_hash_that_crashes_takes_no_place_for_ever() -> None:
    """The next one tries again."""
    world = Ring()
    key = world.make()
    fails = True

    async def hashing(work: Callable[[], Principal | None], lane: str) -> Principal | None:
        if fails:
            raise RuntimeError("no more threads")
        return await world.hash(work, lane)

    ring = KeyRing(world.process.keys, None, hashing)
    with pytest.raises(RuntimeError):
        await ring.check(key.plain())
    fails = False
    assert await ring.check(key.plain()) == principal(key)


# -- floods -----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_wrong_keys_push_out_no_right_ones() -> None:
    """Nor do they take more memory than their drawer."""
    world = Ring(hash_sec=0)
    key = world.make()
    world.watch()
    await world.ring.check(key.plain())
    for n in range(WRONG + 50):
        await world.refused(stranger(n))
    for n in range(WRONG + 50):
        await world.refused(wrong(key, n))
    assert world.ring.known(key.plain()) == principal(key)
    assert len(world.ring._wrong._verdicts) == WRONG
    assert len(world.ring._wrong._of) <= WRONG
    assert not world.ring._checks


@in_virtual_time
async def test_the_right_key_that_was_not_used_for_the_longest_time_falls_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs a hash when it comes back."""
    monkeypatch.setattr(key_ring, "RIGHT", 3)
    world = Ring(hash_sec=0)
    keys = [world.make() for _ in range(4)]
    world.watch()
    for key in keys[:3]:
        await world.ring.check(key.plain())
    assert world.ring.known(keys[0].plain())
    await world.ring.check(keys[3].plain())
    assert [world.ring.known(key.plain()) is not None for key in keys] == [True, False, True, True]
    assert RIGHT > 3


@in_virtual_time
async def test_a_flood_of_unknown_ids_is_cut_off() -> None:
    """So many of them are hashed at a time, the others refused at once; a right key is no part of that."""
    world = Ring()
    world.watch()
    key = world.make()
    async with anyio.create_task_group() as group:
        for n in range(10 * STRANGERS):
            group.start_soon(world.refused, stranger(n))
        await settle_down()
        assert world.hashed == [NOBODY] * STRANGERS
        assert await world.ring.check(key.plain()) == principal(key)
    assert world.ring._strangers == 0
    await world.refused(stranger(10 * STRANGERS))
    assert world.hashed[-1] == NOBODY


# -- against a naive model --------------------------------------------------------------------------------------------


@frozen
class Step:
    """One thing that happens, to one of three keys."""

    what: Literal["present", "wrong", "revoke", "remove", "rewrite", "tell", "watch", "lose", "wait", "cancel"]
    which: int
    sec: float


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["present"] * 6 + ["wrong", "revoke", "remove", "rewrite", "tell", "tell", "watch", "lose"] * 2)
        | st.sampled_from(["wait", "cancel"]),
        st.integers(0, 2),
        st.sampled_from([0.0, 0.01, HASH_SEC, 1.0, BLIND_SEC]),
    ),
    max_size=60,
)


@define
class Naive:
    """All that ever was true of one key, and all that the ring was told."""

    gone_at: float = math.inf
    """When it was revoked or removed; both are for good here."""
    told: bool = False
    """The ring was told so."""


class Play:
    """A ring, its store and the model of both, side by side."""

    def __init__(self, group: TaskGroup) -> None:
        self.world = Ring()
        self.group = group
        self.keys = [self.world.make() for _ in range(3)]
        self.models = [Naive() for _ in range(3)]
        self.scopes: list[anyio.CancelScope] = []
        self.news: list[int] | None = None
        """The keys that the open watch has yet to tell of, None without a watch; one that is open has told the load."""
        self.blind_since = 0.0
        self.world.server.faults.rate("keys.get", Slow(HASH_SEC), 0.5)
        self.world.server.faults.rate("keys.get", Lost.AFTER, 0.05)

    async def step(self, step: Step) -> None:
        key, model = self.keys[step.which], self.models[step.which]
        match step.what:
            case "present":
                self.group.start_soon(self.present, step.which)
            case "wrong":
                self.group.start_soon(self.present_wrong, wrong(key, step.which))
            case "revoke" | "remove" | "rewrite":
                self.change(step)
            case "tell" if self.news:
                self.tell(self.news.pop(0))
            case "watch" if self.news is None:
                self.world.watch()
                self.news = []
                for each in self.models:
                    each.told = each.gone_at < math.inf
            case "lose" if self.news is not None:
                self.news = None
                self.blind_since = anyio.current_time()
                self.world.ring.watch_lost()
            case "cancel":
                for scope in self.scopes[::2]:
                    scope.cancel()
            case _:
                assert not model.told or self.world.ring.known(key.plain()) is None
        await anyio.sleep(step.sec)

    def change(self, step: Step) -> None:
        key, model = self.keys[step.which], self.models[step.which]
        if model.gone_at < math.inf:
            return
        if step.what == "rewrite":
            record = self.world.stored(key).record
            self.world.write(evolve(record, admin=not record.admin))
        else:
            model.gone_at = anyio.current_time()
            if step.what == "revoke":
                self.world.revoke(key)
            else:
                self.world.server.keys.write(key.key_id, None, None)
        if self.news is not None:
            self.news.append(step.which)

    def tell(self, which: int) -> None:
        key = self.keys[which]
        found = self.world.process.keys._read(key.key_id)
        if found is None:
            self.world.ring.forget(key.key_id)
        else:
            self.world.ring.note(found)
        self.models[which].told = self.models[which].gone_at < math.inf

    async def present(self, which: int) -> None:
        key, model = self.keys[which], self.models[which]
        was_gone = anyio.current_time() - model.gone_at
        is_blind_too_long = self.news is None and anyio.current_time() - self.blind_since >= BLIND_SEC
        with anyio.CancelScope() as scope, contextlib.suppress(NatsUnavailable):
            self.scopes.append(scope)
            try:
                assert await self.world.ring.check(key.plain())
            except InvalidApiKey:
                assert model.gone_at < math.inf, "a right key was refused"
                return
            assert not model.told, "the ring was told that this key is gone"
            assert not (was_gone >= 0 and is_blind_too_long), "nobody told it for so long, and it did not look"

    async def present_wrong(self, text: str) -> None:
        with contextlib.suppress(NatsUnavailable):
            await self.world.refused(text)

    async def end(self) -> None:
        """Everything is told, nothing goes wrong any more: the ring and the store agree."""
        self.world.server.faults.calm()
        if self.news is None:
            self.world.watch()
        for which in self.news or ():
            self.tell(which)
        for key, model in zip(self.keys, self.models, strict=True):
            with contextlib.suppress(InvalidApiKey):
                found = await self.world.ring.check(key.plain())
                assert model.gone_at == math.inf
                assert found.is_admin == self.world.stored(key).record.admin
                continue
            assert model.gone_at < math.inf


@given(steps=STEPS, seed=st.integers(0, 10_000))
@settings(max_examples=200, deadline=None)
def test_nobody_is_let_in_after_the_ring_was_told(steps: list[Step], seed: int) -> None:
    """Whatever happens in whatever order: a key that is gone is refused from the moment that the ring is told of it.

    One that is not gone is never refused; without a watch nobody is trusted for longer than the time for that.
    """

    async def main() -> None:
        with anyio.fail_after(10_000):
            async with anyio.create_task_group() as group:
                play = Play(group)
                for step in steps:
                    await play.step(step)
            await play.end()
            assert not play.world.ring._checks

    run_virtual(main, seed=seed)
