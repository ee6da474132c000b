"""The dead letters."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.dead_letter import DeadLetter, Reason, letter_about
from pyoco_runtime.model.job import InvalidJob
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


async def test_it_fails_fast_while_disconnected(world: World) -> None:
    """And works again after the reconnect."""
    async with world.process() as process:
        await process.disconnect()
        with pytest.raises(NatsUnavailable), anyio.fail_after(1):
            await process.dead_letters.publish(_letter(world))
        await process.reconnect()
        await process.dead_letters.publish(_letter(world))
