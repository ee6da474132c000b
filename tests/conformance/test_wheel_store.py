"""The wheel store."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio
import pytest

from pyoco_runtime.errors import NatsUnavailable, WheelGone
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.ports import WheelWatch
from tests.conformance.world import Process, World

DATA = bytes(range(256)) * 1024  # more than one chunk of the object store


def _name(world: World, version: str = "1") -> str:
    return f"{world.tag.replace('-', '_')}-{version}-py3-none-any.whl"


async def _ours(process: Process, world: World) -> list[WheelInfo]:
    return [each for each in await process.wheels.list() if each.name.startswith(world.tag.replace("-", "_"))]


async def _drain(watch: WheelWatch) -> None:
    """Hear of everything that is still on its way."""
    with anyio.move_on_after(0.5):
        while True:
            await watch.changed()


async def test_uploaded_wheels_are_listed(world: World) -> None:
    """With what a worker needs to choose; a new upload has a new nuid; a deleted one is not listed."""
    async with world.process() as process:
        assert await _ours(process, world) == []
        await world.upload(_name(world), DATA, ("a", "b"))
        await world.upload(_name(world, "2"), b"", ())
        first, second = await _ours(process, world)
        assert (first.name, first.size_bytes, first.tags) == (_name(world), len(DATA), ("a", "b"))
        assert first.sha256_hex == hashlib.sha256(DATA).hexdigest()
        assert (second.tags, second.size_bytes) == ((), 0)
        assert first.modified is not None
        assert first.modified > 1_000_000_000
        await world.upload(_name(world), DATA, ("a", "b"))
        again, _ = await _ours(process, world)
        assert again.nuid != first.nuid
        await world.delete_wheel(_name(world))
        assert [each.name for each in await _ours(process, world)] == [_name(world, "2")]


async def test_a_wheel_is_downloaded_byte_for_byte(world: World, tmp_path: Path) -> None:
    """Into the file that was named."""
    async with world.process() as process:
        await world.upload(_name(world), DATA, ())
        await process.wheels.download(_name(world), tmp_path / "it.whl")
    assert (tmp_path / "it.whl").read_bytes() == DATA


async def test_a_wheel_that_is_gone_is_said_to_be(world: World, tmp_path: Path) -> None:
    """Whether it was deleted or never there."""
    async with world.process() as process:
        await world.upload(_name(world), DATA, ())
        await world.delete_wheel(_name(world))
        for name in (_name(world), _name(world, "9")):
            with pytest.raises(WheelGone):
                await process.wheels.download(name, tmp_path / "it.whl")


async def test_changes_are_heard(world: World) -> None:
    """Uploads and deletions, as soon as the watch is open."""
    async with world.process() as process, process.wheels.watching() as watch:
        for version in ("1", "2", "3"):
            await world.upload(_name(world, version), b"x", ())
            while _name(world, version) not in [each.name for each in await _ours(process, world)]:
                await watch.changed()
        await _drain(watch)
        await world.delete_wheel(_name(world))
        with anyio.fail_after(5):
            await watch.changed()


async def test_a_watch_ends_with_its_connection(world: World, tmp_path: Path) -> None:
    """Whoever waits is told; everything else fails fast."""
    async with world.process() as process:
        async with process.wheels.watching() as watch, anyio.create_task_group() as tasks:
            await _drain(watch)
            tasks.start_soon(process.disconnect)
            with pytest.raises(NatsUnavailable):
                await watch.changed()
        with anyio.fail_after(1):
            with pytest.raises(NatsUnavailable):
                await process.wheels.list()
            with pytest.raises(NatsUnavailable):
                await process.wheels.download(_name(world), tmp_path / "it.whl")
            with pytest.raises(NatsUnavailable):
                async with process.wheels.watching():
                    pass
