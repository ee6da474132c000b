"""Uploading, reading back and deleting wheels, and their history."""

from __future__ import annotations

import hashlib
import uuid
from contextlib import aclosing

import anyio
import pytest

from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, WheelGone
from pyoco_runtime.model.wheel_event import Actor, HistoryQuery, Source, WheelAction, WheelEvent
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.ports import WheelLabel, WheelRegistry
from tests.conformance.world import Process, World

DATA = bytes(range(256)) * 1200  # more than two chunks of the object store


def _name(world: World, version: str = "1") -> str:
    return f"{world.tag.replace('-', '_')}-{version}-py3-none-any.whl"


async def _put(wheels: WheelRegistry, name: str, data: bytes = DATA, tags: tuple[str, ...] = ()) -> WheelInfo:
    async with wheels.uploading() as upload:
        for start in range(0, len(data), 100_000):
            await upload.write(data[start : start + 100_000])
        return await upload.commit(WheelLabel(name=name, tags=tags), (await wheels.look()).revision)


async def _read(wheels: WheelRegistry, name: str) -> bytes:
    reading = await wheels.open(name)
    async with aclosing(reading.chunks()) as chunks:
        return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize("data", [DATA, b"x", b"", bytes(256 * 1024)], ids=["odd", "byte", "empty", "whole chunks"])
async def test_an_upload_is_read_back(world: World, data: bytes) -> None:
    """By us, and by any other client of the store; with the digest that it has."""
    async with world.process() as process:
        info = await _put(process.wheels, _name(world), data, ("a", "b"))
        assert (info.size_bytes, info.tags, info.bucket) == (len(data), ("a", "b"), "pyoco_wheels")
        assert info.sha256_hex == hashlib.sha256(data).hexdigest()
        assert info in await process.wheels.list()
        assert (await process.wheels.open(_name(world))).info == info
        assert await _read(process.wheels, _name(world)) == data
        assert await world.read_wheel(_name(world)) == data


async def test_what_is_not_committed_leaves_nothing(world: World) -> None:
    """Whether the block ends by itself, by an error or by cancellation."""
    async with world.process() as process:
        nuids = []
        for error in (None, RuntimeError()):
            with anyio.CancelScope():
                try:
                    async with process.wheels.uploading() as upload:
                        nuids.append(upload.nuid)
                        await upload.write(DATA)
                        assert await world.wheel_chunks(upload.nuid) >= 128 * 1024
                        if error:
                            raise error
                except RuntimeError:
                    pass
        with anyio.CancelScope() as scope:
            async with process.wheels.uploading() as upload:
                nuids.append(upload.nuid)
                await upload.write(DATA)
                scope.cancel()
                await upload.write(DATA)
        assert [await world.wheel_chunks(nuid) for nuid in nuids] == [0, 0, 0]
        with pytest.raises(WheelGone):
            await process.wheels.open(_name(world))


async def test_of_two_commits_over_one_look_one_wins(world: World) -> None:
    """Also for different names: whoever decides by the shelf decides alone. The other looks again."""
    async with (
        world.process() as ours,
        world.process() as theirs,
        ours.wheels.uploading() as first,
        theirs.wheels.uploading() as second,
    ):
        await first.write(b"first")
        await second.write(b"second")
        revision = (await ours.wheels.look()).revision
        await first.commit(WheelLabel(name=_name(world, "1")), revision)
        with pytest.raises(RevisionConflict):
            await second.commit(WheelLabel(name=_name(world, "2")), revision)
        assert _name(world, "2") not in [info.name for info in await theirs.wheels.list()]
        await second.commit(WheelLabel(name=_name(world, "2")), (await theirs.wheels.look()).revision)
        assert await _read(ours.wheels, _name(world, "2")) == b"second"


async def test_a_foreign_write_is_seen_by_the_commit(world: World) -> None:
    """The peer's gateway knows nothing of our revisions; uploads and deletions of others change them all the same."""
    async with world.process() as process, process.wheels.uploading() as upload:
        await upload.write(DATA)
        revision = (await process.wheels.look()).revision
        await world.upload(_name(world, "2"), b"foreign", ())
        with pytest.raises(RevisionConflict):
            await upload.commit(WheelLabel(name=_name(world)), revision)
        revision = (await process.wheels.look()).revision
        await world.delete_wheel(_name(world, "2"))
        with pytest.raises(RevisionConflict):
            await upload.commit(WheelLabel(name=_name(world)), revision)


async def test_replacing_drops_the_old_bytes(world: World) -> None:
    """After the new ones are in place."""
    async with world.process() as process:
        old = await _put(process.wheels, _name(world), b"old")
        new = await _put(process.wheels, _name(world), b"new")
        assert old.nuid != new.nuid
        assert await world.wheel_chunks(old.nuid) == 0
        assert await _read(process.wheels, _name(world)) == b"new"


async def test_a_deleted_wheel_is_gone(world: World) -> None:
    """With its bytes; whoever deletes it again is told, and the name may be used again."""
    async with world.process() as process:
        info = await _put(process.wheels, _name(world), tags=("a",))
        reading = await process.wheels.open(_name(world))
        assert await process.wheels.delete(_name(world)) == info
        assert await world.wheel_chunks(info.nuid) == 0
        for gone in (process.wheels.delete, process.wheels.open):
            with pytest.raises(WheelGone):
                await gone(_name(world))
        with pytest.raises(WheelGone):
            async for _ in reading.chunks():
                pass
        await _put(process.wheels, _name(world), b"again")
        assert await world.read_wheel(_name(world)) == b"again"


async def test_a_sweep_leaves_young_bytes_and_those_of_wheels(world: World) -> None:
    """An upload that is under way looks like one that was broken off."""
    async with world.process() as process:
        info = await _put(process.wheels, _name(world))
        async with process.wheels.uploading() as upload:
            await upload.write(DATA)
            await process.wheels.sweep()
            assert await world.wheel_chunks(info.nuid) == len(DATA)
            assert await world.wheel_chunks(upload.nuid) >= 128 * 1024


async def test_everything_fails_fast_without_a_connection(world: World) -> None:
    """With the one error that the gateway answers."""
    async with world.process() as process:
        await process.disconnect()
        with anyio.fail_after(1):
            for call in (process.wheels.look, process.wheels.sweep):
                with pytest.raises(NatsUnavailable):
                    await call()
            for named in (process.wheels.open, process.wheels.delete):
                with pytest.raises(NatsUnavailable):
                    await named(_name(world))
            with pytest.raises(NatsUnavailable):
                async with process.wheels.uploading() as upload:
                    await upload.write(DATA)
            with pytest.raises(NatsUnavailable):
                await process.wheel_history.recent(HistoryQuery())


# -- the history ------------------------------------------------------------------------------------------------------


def _event(world: World, at: float, action: WheelAction = WheelAction.UPLOAD, version: str = "1") -> WheelEvent:
    return WheelEvent(
        event_id=uuid.uuid4().hex,
        occurred_at=world.now() + at,
        action=action,
        wheel_name=_name(world, version),
        tags=("a",),
        size_bytes=3,
        sha256_hex="ab",
        replace=True if action is WheelAction.UPLOAD else None,
        actor=Actor(tenant_id="t", api_key_id="k"),
        source=Source(remote_addr="127.0.0.1", user_agent="日本"),
    )


async def _append(process: Process, *events: WheelEvent) -> None:
    for event in events:
        await process.wheel_history.append(event)


async def test_the_newest_events_come_first(world: World) -> None:
    """As they were written, whatever the order in which they were; no more than are asked for."""
    async with world.process() as process:
        events = [_event(world, at) for at in (3.0, 1.0, 2.0)]
        await _append(process, *events, events[0])
        query = HistoryQuery(10, _name(world))
        assert await process.wheel_history.recent(query) == [events[0], events[2], events[1]]
        assert await process.wheel_history.recent(HistoryQuery(1, _name(world))) == [events[0]]
        assert len(await process.wheel_history.recent(HistoryQuery(2))) == 2


async def test_events_are_chosen_by_wheel_and_action(world: World) -> None:
    """Together or alone."""
    async with world.process() as process:
        up, down = _event(world, 1.0), _event(world, 2.0, WheelAction.DELETE)
        other = _event(world, 3.0, WheelAction.DELETE, "2")
        await _append(process, up, down, other)
        recent = process.wheel_history.recent
        assert await recent(HistoryQuery(10, _name(world), WheelAction.DELETE)) == [down]
        assert await recent(HistoryQuery(10, _name(world, "2"))) == [other]
        assert up in await recent(HistoryQuery(500, None, WheelAction.UPLOAD))
        assert await recent(HistoryQuery(10, _name(world, "3"))) == []
