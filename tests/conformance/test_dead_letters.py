"""The dead letters."""

from __future__ import annotations

import json

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable, Unreadable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter, Reason, letter_about
from pyoco_runtime.model.job import InvalidJob
from pyoco_runtime.ports import CaughtUp, LetterChanges, StoredLetter
from tests.conformance.world import World


def _letter(world: World) -> DeadLetter:
    return letter_about(
        world.job(), Reason.EXECUTION_ERROR, "boom", now=1.5, tag=world.tag, attempt=Attempt(3, 2), worker_id="w"
    )


async def test_letters_are_stored_in_order_as_they_were_written(world: World) -> None:
    """Under the tag of their job."""
    bad = letter_about(
        InvalidJob("not JSON", b"\xff garbage"), Reason.INVALID_JOB, "not JSON", now=2.0, tag=world.tag, subject="s"
    )
    letters = [_letter(world), bad]
    async with world.process() as process:
        for letter in letters:
            await process.dead_letters.publish(letter)
        assert await world.letters(world.tag) == letters


async def _caught_up(feed: LetterChanges) -> list[StoredLetter]:
    """What the feed tells until it has told everything."""
    found: list[StoredLetter] = []
    while not isinstance(change := await feed.next(), CaughtUp):
        found.append(change)
    return found


async def test_a_letter_carries_its_job(world: World) -> None:
    """So that it can be replayed."""
    letter = _letter(world)
    assert letter.job is not None
    async with world.process() as process:
        await process.dead_letters.publish(letter)
        assert await world.letters(world.tag) == [letter]


async def test_a_letter_that_is_too_large_leaves_out_what_can_be_spared(world: World) -> None:
    """First the job, which has a place in the letter only so that it can be replayed; then most of the error."""
    letter = _letter(world)
    assert letter.job is not None
    large = evolve(letter, job=evolve(letter.job, params={"x": "y" * 600_000}))
    huge = evolve(large, error="é" * 2_000_000)
    async with world.process() as process:
        await process.dead_letters.publish(large)
        await process.dead_letters.publish(huge)
        short, shorter = await world.letters(world.tag)
        assert short == evolve(large, job=None)
        assert shorter == evolve(huge, job=None, error="é" * 4096)


async def test_a_letter_is_read_and_dropped_by_its_number(world: World) -> None:
    """Once: whoever comes second learns that it was gone."""
    letter = _letter(world)
    async with world.process() as process, world.process() as other:
        await process.dead_letters.publish(letter)
        async with process.dead_letters.changes() as feed:
            [stored] = [each for each in await _caught_up(feed) if each.letter == letter]
        before = await process.dead_letters.count()
        assert await other.dead_letters.get(stored.seq) == stored
        assert await other.dead_letters.drop(stored.seq)
        assert await process.dead_letters.get(stored.seq) is None
        assert not await process.dead_letters.drop(stored.seq)
        assert await process.dead_letters.count() == before - 1


async def test_numbers_that_no_letter_has_are_not_there(world: World) -> None:
    """Whatever a caller makes up."""
    async with world.process() as process:
        for seq in (-1, 0, 10**9, 2**63 - 1, 2**63, 2**64, 10**30):
            assert await process.dead_letters.get(seq) is None
            assert not await process.dead_letters.drop(seq)


async def test_letters_of_the_peer_can_be_read(world: World) -> None:
    """They lack what we have added, and what they did not know."""
    common = {"error": "boom", "timestamp": 3.5, "worker_id": "w"}
    failed = {
        "reason": "execution_error",
        **common,
        "run_id": "r",
        "flow_name": "f",
        "tag": world.tag,
        "tags": ["a"],
        "tenant_id": None,
        "api_key_id": None,
    }
    invalid = {"reason": "invalid_job", **common, "subject": "pyoco.work.x", "num_delivered": 1, "payload": "{"}
    async with world.process() as process:
        for raw in (failed, invalid, {**failed, "novelty": {"x": 1}}):
            seq = await world.write_letter(world.tag, json.dumps(raw).encode())
            found = await process.dead_letters.get(seq)
            assert found is not None
            assert (found.seq, found.letter.error, found.letter.timestamp) == (seq, "boom", 3.5)
            assert found.letter.job is None
            assert await process.dead_letters.drop(seq)


async def test_a_damaged_letter_can_be_dropped_but_not_read(world: World) -> None:
    """It is not taken for an absent one, and the feed skips it."""
    async with world.process() as process:
        seq = await world.write_letter(world.tag, b"garbage")
        with pytest.raises(Unreadable):
            await process.dead_letters.get(seq)
        async with process.dead_letters.changes() as feed:
            assert seq not in [each.seq for each in await _caught_up(feed)]
        assert await process.dead_letters.drop(seq)


async def test_the_feed_tells_first_what_is_stored_and_then_every_new_one(world: World) -> None:
    """Oldest first, each once, under its number."""
    letters = [evolve(_letter(world), timestamp=float(n)) for n in range(300)]
    async with world.process() as process:
        for letter in letters[:200]:
            await process.dead_letters.publish(letter)
        async with process.dead_letters.changes() as feed:
            told = [each for each in await _caught_up(feed) if each.letter.tag == world.tag]
            for letter in letters[200:]:
                await process.dead_letters.publish(letter)
            while len(told) < 300:
                change = await feed.next()
                assert isinstance(change, StoredLetter)
                told += [change] if change.letter.tag == world.tag else []
        assert [each.letter for each in told] == letters
        assert [each.seq for each in told] == sorted({each.seq for each in told})


async def test_a_feed_ends_with_the_connection(world: World) -> None:
    """Whoever follows opens a new one after the reconnect."""
    async with world.process() as process:
        async with process.dead_letters.changes() as feed:
            await _caught_up(feed)
            await process.disconnect()
            with pytest.raises(NatsUnavailable), anyio.fail_after(1):
                await feed.next()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            async with process.dead_letters.changes():
                pass
        await process.reconnect()
        async with process.dead_letters.changes() as feed:
            await _caught_up(feed)


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.dead_letters.publish(_letter(world))
        for call in (
            lambda: process.dead_letters.get(1),
            lambda: process.dead_letters.drop(1),
            lambda: process.dead_letters.count(),
        ):
            with pytest.raises(NatsUnavailable), anyio.fail_after(1):
                await call()
        await process.reconnect()
        await process.dead_letters.publish(_letter(world))
