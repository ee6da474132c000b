"""The places of a worker."""

from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.slots import Slots
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.actors.support import in_virtual_time, settle_down


@in_virtual_time
async def test_one_tag_gets_all_free_places() -> None:
    """Nobody else waits."""
    slots = Slots(4)
    assert await slots.reserve() == 4
    assert slots.free == 0


@in_virtual_time
async def test_several_tags_share_what_comes_free() -> None:
    """Four places for two who wait are two for each."""
    slots = Slots(4)
    assert await slots.reserve() == 4
    got: dict[str, int] = {}

    async def ask(tag: str) -> None:
        got[tag] = await slots.reserve()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "a")
        tasks.start_soon(ask, "b")
        await settle_down()
        slots.give_back(4)
    assert got == {"a": 2, "b": 2}


@in_virtual_time
async def test_turns_are_in_order_and_nobody_overtakes() -> None:
    """A place that comes free goes to whoever waits longest, and never out of turn."""
    slots = Slots(1)
    await slots.reserve()
    order: list[int] = []

    async def ask(n: int) -> None:
        order.append(n if await slots.reserve() == 1 else -1)

    async with anyio.create_task_group() as tasks:
        for n in range(3):
            tasks.start_soon(ask, n)
            await settle_down()
        for n in range(3):
            slots.give_back(1)
            assert not slots.try_reserve()
            await settle_down()
            assert order == list(range(n + 1))


@in_virtual_time
async def test_most_bounds_a_share() -> None:
    """The rest goes on to the next."""
    slots = Slots(4)
    assert await slots.reserve(most=1) == 1
    assert slots.free == 3


@in_virtual_time
async def test_until_full_ends_when_there_is_a_run_in_every_place() -> None:
    """Reserved places do not count; a block that begins when all is full ends at once."""
    slots = Slots(2)
    await slots.reserve()
    slots.occupy()
    ended: list[float] = []

    async def stand() -> None:
        with slots.until_full():
            await anyio.sleep_forever()
        ended.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stand)
        await anyio.sleep(1)
        assert ended == []
        slots.occupy()
        await settle_down()
        assert len(ended) == 1
        await stand()
        assert len(ended) == 2
        slots.vacate()
        with anyio.move_on_after(1):
            await stand()
            raise AssertionError("a place is free")


class Holder:
    """Somebody who reserves, occupies and gives back as it is told, and knows what it holds."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.reserved = 0
        self.running = 0
        self.scope = anyio.CancelScope()
        self.waits = False

    async def ask(self, most: int | None) -> None:
        self.waits = True
        with self.scope:
            got = await self.slots.reserve(most)
            self.reserved += got
        self.scope = anyio.CancelScope()
        self.waits = False

    def do(self, what: str) -> None:
        match what:
            case "cancel":
                self.scope.cancel()
            case "try":
                self.reserved += self.slots.try_reserve()
            case "give_back" if self.reserved:
                self.reserved -= 1
                self.slots.give_back(1)
            case "occupy" if self.reserved:
                self.reserved -= 1
                self.running += 1
                self.slots.occupy()
            case "vacate" if self.running:
                self.running -= 1
                self.slots.vacate()


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["ask", "ask1", "ask2", "cancel", "try", "give_back", "occupy", "vacate"]),
        st.integers(0, 3),  # turns of the scheduler that pass before the next step
    ),
    max_size=40,
)


@given(total=st.integers(1, 5), steps=STEPS, backend=st.sampled_from(["trio", "asyncio"]))
def test_no_place_is_handed_out_twice_and_none_is_lost(
    total: int, steps: list[tuple[int, str, int]], backend: str
) -> None:
    """Under every sequence of reserve, cancel, give back, occupy and vacate by three holders."""

    async def main() -> None:
        slots = Slots(total)
        holders = [Holder(slots) for _ in range(3)]
        async with anyio.create_task_group() as tasks:
            for who, what, turns in steps:
                holder = holders[who]
                if not what.startswith("ask"):
                    holder.do(what)
                elif not holder.waits:
                    holder.waits = True
                    tasks.start_soon(holder.ask, int(what[3:]) if what[3:] else None)
                for _ in range(turns):
                    await checkpoint()
                held = sum(each.reserved + each.running for each in holders)
                assert 0 <= slots.free <= total - held
                assert slots.running == sum(each.running for each in holders)
            await settle_down()
            held = sum(each.reserved + each.running for each in holders)
            assert slots.free == total - held
            assert not slots.free or not any(each.waits for each in holders), "a free place, and somebody waits"
            tasks.cancel_scope.cancel()
        for each in holders:
            while each.reserved or each.running:
                each.do("give_back")
                each.do("vacate")
        assert (slots.free, slots.running) == (total, 0)

    run_virtual(main, backend="trio" if backend == "trio" else "asyncio")
