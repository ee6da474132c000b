"""Dead letters on their way to the publisher."""

from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.letterbox import Letterbox
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from tests.unit.actors.support import in_virtual_time, settle_down


def letter(n: int) -> DeadLetter:
    return DeadLetter(timestamp=float(n), reason=Reason.EXECUTION_ERROR, error=None, run_id=f"r-{n}")


@in_virtual_time
async def test_letters_stay_in_order_until_they_are_taken_out() -> None:
    """To look at the first one does not take it out."""
    box = Letterbox()
    for n in range(3):
        await box.post(letter(n))
    assert (await box.first()) is (await box.first())
    out = []
    while len(box):
        posted = await box.first()
        out.append(posted.letter.run_id)
        box.take_out(posted)
        assert posted.sent.is_set()
    assert out == ["r-0", "r-1", "r-2"]


@in_virtual_time
async def test_first_waits_for_a_letter() -> None:
    """Whoever waits is woken by the first post."""
    box = Letterbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.post, letter(1))
        with anyio.fail_after(1):
            assert (await box.first()).letter.run_id == "r-1"


@in_virtual_time
async def test_a_full_box_makes_every_sender_wait_and_forgets_none() -> None:
    """Five senders wait at once; each place that comes free lets one of them in."""
    box = Letterbox(capacity=2)
    arrived: list[int] = []

    async def send(n: int) -> None:
        await box.post(letter(n))
        arrived.append(n)

    async with anyio.create_task_group() as tasks:
        for n in range(7):
            tasks.start_soon(send, n)
        await settle_down()
        assert len(arrived) == len(box) == 2
        for left in range(6, -1, -1):
            with anyio.fail_after(1):
                box.take_out(await box.first())
                await settle_down()
            assert len(box) == min(2, left)
    assert sorted(arrived) == list(range(7))


@in_virtual_time
async def test_a_sender_that_is_cancelled_while_it_waits_has_sent_nothing() -> None:
    """And the others get in."""
    box = Letterbox(capacity=1)
    await box.post(letter(0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(box.post, letter(1))
        await checkpoint()
        with anyio.move_on_after(1):
            await box.post(letter(2))
        box.take_out(await box.first())
    assert [(await box.first()).letter.run_id, len(box)] == ["r-1", 1]


@in_virtual_time
async def test_a_letter_that_was_taken_out_already_does_no_harm() -> None:
    """A publisher of an earlier life may say so twice."""
    box = Letterbox()
    first = await box.post(letter(1))
    await box.post(letter(2))
    box.take_out(first)
    box.take_out(first)
    assert (await box.first()).letter.run_id == "r-2"
