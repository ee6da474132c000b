"""The promise store."""

from __future__ import annotations

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.ports import Promise
from tests.conformance.world import World


def _promise(world: World) -> Promise:
    return Promise(world.run_id(), "0" * 64, world.now() + 0.123456789)


async def test_the_first_promise_under_a_key_stands(world: World) -> None:
    """Whoever comes later is told of it, on any gateway; asking again with the same is told of itself."""
    first, second = _promise(world), _promise(world)
    async with world.process() as process, world.process() as other:
        assert await process.promises.claim(world.tag, first) == first
        assert await other.promises.claim(world.tag, second) == first
        assert await process.promises.claim(world.tag, first) == first
        assert await other.promises.claim(world.tag + "-2", second) == second


async def test_of_many_at_once_one_wins(world: World) -> None:
    """And all are told the same."""
    answers: list[Promise] = []
    async with world.process() as process, world.process() as other:

        async def claim(n: int) -> None:
            answers.append(await (process, other)[n % 2].promises.claim(world.tag, _promise(world)))

        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(claim, n)
    assert len(answers) == 20
    assert len(set(answers)) == 1


async def test_a_promise_that_was_not_kept_frees_its_key(world: World) -> None:
    """Only whoever holds it can release it; releasing twice is fine."""
    first, second = _promise(world), _promise(world)
    async with world.process() as process:
        await process.promises.release(world.tag, first)
        await process.promises.claim(world.tag, first)
        await process.promises.release(world.tag, second)
        await process.promises.release(world.tag, evolve(first, body_sha256="1" * 64))
        assert await process.promises.claim(world.tag, second) == first
        for _ in range(2):
            await process.promises.release(world.tag, first)
        assert await process.promises.claim(world.tag, second) == second
        await process.promises.release(world.tag, first)
        assert await process.promises.claim(world.tag, first) == second


async def test_any_text_is_a_key(world: World) -> None:
    """Also what no bucket would take; similar ones are different."""
    keys = ["", " ", "a b", "*", ">", "..", "日本語", "x" * 100_000, "\x00", "\ud800", "A", "a"]
    async with world.process() as process:
        promises = {key: _promise(world) for key in keys}
        for key, promise in promises.items():
            assert await process.promises.claim(world.tag + key, promise) == promise
        for key, promise in promises.items():
            assert await process.promises.claim(world.tag + key, _promise(world)) == promise


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    promise = _promise(world)
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.promises.claim(world.tag, promise)
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.promises.release(world.tag, promise)
        await process.reconnect()
        assert await process.promises.claim(world.tag, promise) == promise
