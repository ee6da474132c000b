"""The wheel syncer on a store and an overlay in memory, in virtual time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from anyio.lowlevel import checkpoint

from pyoco_runtime.actors.wheel_syncer import MAX_DOUBLINGS, WheelSyncer
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.errors import NatsUnavailable, WheelGone, WheelSyncFailed
from pyoco_runtime.model.wheels import InstalledWheel, Local, Outcome, Plan, WheelInfo
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.testing.memory_link import MemoryLink
from pyoco_runtime.testing.stress import stress_start_cancel
from pyoco_runtime.wheel_gate import WheelGate

INTERVAL_SEC = 10.0


class Shelf:
    """A wheel store; `refuse` makes the next calls fail, `lose` ends the open watches."""

    def __init__(self) -> None:
        self.wheels: dict[str, WheelInfo] = {}
        self.refuse = 0
        self.refuse_watch = 0
        self.download_error: Exception | None = None
        self.lists: list[float] = []
        self.open = 0
        self._epoch = 0
        self._version = 0
        self._changed = trio.Event()

    def put(self, name: str, nuid: str = "1") -> None:
        self.wheels[name] = WheelInfo(name=name, nuid=nuid, size_bytes=1)
        self._tell()

    def lose(self) -> None:
        self._epoch += 1
        self._tell()

    def _tell(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = trio.Event()

    async def list(self) -> list[WheelInfo]:
        self.lists.append(trio.current_time())
        await trio.sleep(0.01)
        if self.refuse > 0:
            self.refuse -= 1
            raise NatsUnavailable("the store is away")
        return list(self.wheels.values())

    async def download(self, name: str, to: Path) -> None:
        await trio.sleep(0.01)
        if self.download_error is not None:
            raise self.download_error

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Watch]:
        await checkpoint()
        if self.refuse_watch > 0:
            self.refuse_watch -= 1
            raise NatsUnavailable("no watch for you")
        self.open += 1
        try:
            yield Watch(self)
        finally:
            self.open -= 1


class Watch:
    """Hints of one shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._epoch = shelf._epoch
        self._seen = shelf._version

    async def changed(self) -> None:
        while self._seen == self._shelf._version:
            await self._shelf._changed.wait()
        self._seen = self._shelf._version
        if self._epoch != self._shelf._epoch:
            raise NatsUnavailable("the watch is lost")


class Table:
    """An overlay that installs nothing; `bad` wheels fail, `fail` fails whole."""

    def __init__(self) -> None:
        self.manifest: dict[str, InstalledWheel] = {}
        self.bad: set[str] = set()
        self.fail = ""
        self.install_sec = 0.01
        self.claimed = False
        self.changed = False

    async def inspect(self) -> Local:
        self.claimed = True
        await checkpoint()
        return Local(frozenset({"py3-none-any"}), dict(self.manifest), frozenset(self.manifest))

    def incoming(self, name: str) -> Path:
        return Path("/nowhere") / name

    async def install(self, plan: Plan, local: Local, downloads: Mapping[str, Path]) -> Outcome:
        await trio.sleep(self.install_sec)
        if self.fail:
            raise WheelSyncFailed(self.fail)
        good = [choice for choice in plan.to_install if choice.name in downloads and choice.name not in self.bad]
        for name in plan.to_remove:
            del self.manifest[name]
        for choice in good:
            self.manifest[choice.name] = InstalledWheel(
                nuid=choice.info.nuid,
                package_name=choice.package_name,
                package_version=choice.package_version,
                size_bytes=1,
                sha256_hex="",
            )
        self.changed = self.changed or bool(good or plan.to_remove)
        problems = dict.fromkeys(self.bad & downloads.keys(), "it is bad")
        return Outcome(dict(self.manifest), tuple(choice.name for choice in good), plan.to_remove, problems)

    def take_change(self) -> bool:
        changed, self.changed = self.changed, False
        return changed

    def release(self) -> None:
        self.claimed = False


class World:
    """All that surrounds the syncer."""

    def __init__(self, *, is_up: bool = True) -> None:
        self.shelf = Shelf()
        self.table = Table()
        self.link = MemoryLink()
        self.gate = WheelGate()
        self.statuses: list[WheelSync] = []
        self.changes = 0
        if is_up:
            self.link.declare_up()

    def make(self) -> WheelSyncer:
        return WheelSyncer(
            self.shelf,
            self.table,
            self.link,
            ("a",),
            gate=self.gate,
            interval_sec=INTERVAL_SEC,
            on_change=self._count,
            report=self.statuses.append,
            clock=lambda: 1000.0 + trio.current_time(),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        async with Supervisor(SupervisorSpec("root", (ActorSpec("wheel-syncer", self.make),))) as tree:
            yield tree
        assert self.shelf.open == 0
        assert not self.table.claimed
        assert self.link._listeners == []

    @property
    def status(self) -> WheelSync:
        return self.statuses[-1]

    def _count(self) -> None:
        self.changes += 1


def name(package: str, version: int = 1) -> str:
    return f"{package}-{version}-py3-none-any.whl"


@pytest.mark.trio
async def test_the_first_sync_opens_the_gate(autojump_clock: object) -> None:
    """Ready at once with an idle status; whoever waits at the gate finds the wheels installed."""
    world = World()
    world.shelf.put(name("x"))
    world.table.install_sec = 100
    async with world.running():
        await trio.sleep(50)
        assert not world.gate.is_open
        assert [each.last_result for each in world.statuses] == ["idle"]
        await world.gate.wait()
        assert list(world.table.manifest) == [name("x")]
        assert (world.status.last_result, world.status.updated_wheels) == ("ok", (name("x"),))
        assert world.status.last_success_at == pytest.approx((world.status.last_attempt_at or 0) + 100.02)
        assert world.changes == 1


@pytest.mark.trio
async def test_it_looks_only_when_something_changed(autojump_clock: object) -> None:
    """An hour of silence costs nothing; a burst of uploads is one change; one that is not for us is none."""
    world = World()
    async with world.running():
        await trio.sleep(3600)
        assert (len(world.shelf.lists), world.status.last_result, world.changes) == (1, "ok", 0)
        for package in ("x", "y", "z"):
            world.shelf.put(name(package))
            await trio.sleep(0.05)
        await trio.sleep(3600)
        assert (len(world.shelf.lists), world.changes, len(world.table.manifest)) == (3, 1, 3)
        world.shelf.put("x-2-cp27-none-win32.whl")
        await trio.sleep(3600)
        assert (len(world.shelf.lists), world.changes) == (4, 1)
        assert (world.status.updated_count, world.status.skipped_incompatible_count) == (0, 1)


@pytest.mark.trio
async def test_a_change_during_a_sync_is_not_missed(autojump_clock: object) -> None:
    """The watch was open before the list was read."""
    world = World()
    world.shelf.put(name("x"))
    world.table.install_sec = 20
    async with world.running():
        await trio.sleep(10)
        world.shelf.put(name("y"))
        await trio.sleep(50)
        assert sorted(world.table.manifest) == [name("x"), name("y")]
        assert world.changes == 2


@pytest.mark.trio
async def test_nats_away_keeps_the_gate_closed_but_not_the_tree_from_starting(autojump_clock: object) -> None:
    """Nobody could pull anyway; with the link come the wheels, and then the gate opens."""
    world = World(is_up=False)
    world.shelf.put(name("x"))
    async with world.running():
        await trio.sleep(3600)
        assert (world.gate.is_open, world.shelf.lists) == (False, [])
        world.link.declare_up()
        await world.gate.wait()
        assert list(world.table.manifest) == [name("x")]


@pytest.mark.trio
async def test_a_link_lost_during_the_first_sync_does_not_open_the_gate(autojump_clock: object) -> None:
    """The first run shall have its wheels; it cannot come before the link is back."""
    world = World()
    world.shelf.put(name("x"))
    world.shelf.refuse = 1
    async with world.running():
        await trio.sleep(0.005)
        world.link.declare_down("lost")
        await trio.sleep(100)
        assert (world.gate.is_open, world.status.last_result) == (False, "error")
        world.link.declare_up()
        await trio.sleep(0.5)
        assert (world.gate.is_open, world.status.last_result) == (True, "ok")


@pytest.mark.trio
@pytest.mark.parametrize("what", ["refuse", "refuse_watch"])
async def test_a_store_that_fails_opens_the_gate_and_is_tried_again(
    autojump_clock: object, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """Runs without new wheels are better than none; each failure has its id; pauses grow to a limit."""
    world = World()
    setattr(world.shelf, what, 10)
    world.shelf.put(name("x"))
    async with world.running() as tree:
        await trio.sleep(1)
        assert (world.gate.is_open, world.status.last_result) == (True, "error")
        assert world.status.last_attempt_at == pytest.approx(1000, abs=0.1)
        assert getattr(world.shelf, what) == 9
        await trio.sleep(INTERVAL_SEC)
        assert getattr(world.shelf, what) == 8
        pauses = [1 << min(n, MAX_DOUBLINGS) for n in range(10)]
        await trio.sleep(sum(pauses) * INTERVAL_SEC)
        assert (world.status.last_result, world.changes) == ("ok", 1)
        assert tree.status().children[0].restarts == 0
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == 10
    assert {getattr(record, "err_id", None) for record in failures} == {"ERR-PYOCO-0024"}
    assert {getattr(record, "msg_id", None) for record in failures} == {"MSG-PYOCO-0024"}


@pytest.mark.trio
async def test_a_bad_wheel_is_told_and_tried_again(autojump_clock: object, caplog: pytest.LogCaptureFixture) -> None:
    """The good ones are in at once; nobody is replaced for an attempt that changed nothing; a new upload cures."""
    world = World()
    world.table.bad = {name("x")}
    world.shelf.put(name("x"))
    world.shelf.put(name("y"))
    async with world.running():
        await world.gate.wait()
        assert (world.status.last_result, world.status.last_error) == ("error", f"{name('x')}: it is bad")
        assert (world.status.updated_wheels, world.changes) == ((name("y"),), 1)
        await trio.sleep(INTERVAL_SEC + 1)
        assert (len(world.shelf.lists), world.changes) == (2, 1)
        world.table.bad = set()
        world.shelf.put(name("x"), "2")
        await trio.sleep(1)
        assert (world.status.last_result, world.status.last_error, world.changes) == ("ok", None, 2)
        await trio.sleep(3600)
        assert len(world.shelf.lists) == 3


@pytest.mark.trio
async def test_a_failed_installation_keeps_what_was(autojump_clock: object) -> None:
    """The error is told; the counts and the last success stay; it is tried again after the interval."""
    world = World()
    world.shelf.put(name("x"))
    async with world.running():
        await world.gate.wait()
        before = world.status
        world.table.fail = "the disk is full"
        world.shelf.put(name("y"))
        await trio.sleep(1)
        assert (world.status.last_result, world.status.last_error) == ("error", "the disk is full")
        assert world.status.last_success_at == before.last_success_at
        assert (world.status.installed_wheels, world.changes) == (before.installed_wheels, 1)
        world.table.fail = ""
        await trio.sleep(INTERVAL_SEC)
        assert (world.status.last_result, world.changes) == ("ok", 2)


@pytest.mark.trio
@pytest.mark.parametrize("error", [WheelGone("gone"), WheelSyncFailed("digest"), OSError(28, "full")])
async def test_a_download_that_fails_is_that_wheels_problem(autojump_clock: object, error: Exception) -> None:
    """Not a crash."""
    world = World()
    world.shelf.download_error = error
    world.shelf.put(name("x"))
    async with world.running() as tree:
        await world.gate.wait()
        assert world.status.last_result == "error"
        assert name("x") in (world.status.last_error or "")
        world.shelf.download_error = None
        await trio.sleep(INTERVAL_SEC + 1)
        assert world.status.last_result == "ok"
        assert tree.status().children[0].restarts == 0


@pytest.mark.trio
async def test_after_a_lost_link_it_looks_again(autojump_clock: object) -> None:
    """A change that nobody heard of is found; while the link is down nothing is asked."""
    world = World()
    async with world.running():
        await world.gate.wait()
        world.link.declare_down("lost")
        world.shelf.wheels[name("x")] = WheelInfo(name=name("x"), nuid="1", size_bytes=1)
        await trio.sleep(100)
        assert len(world.shelf.lists) == 1
        world.link.declare_up()
        await trio.sleep(1)
        assert list(world.table.manifest) == [name("x")]


@pytest.mark.trio
async def test_a_link_that_flickers_during_a_sync_is_noticed(autojump_clock: object) -> None:
    """The installation goes on, and afterwards a new watch is opened."""
    world = World()
    world.shelf.put(name("x"))
    world.table.install_sec = 20
    async with world.running():
        await trio.sleep(10)
        world.link.declare_down("lost")
        world.link.declare_up()
        await trio.sleep(100)
        assert (len(world.shelf.lists), world.changes, world.status.last_result) == (2, 1, "ok")


@pytest.mark.trio
async def test_a_lost_watch_is_opened_again(autojump_clock: object, caplog: pytest.LogCaptureFixture) -> None:
    """Without a word to the user: the wheels are as they should be."""
    world = World()
    async with world.running():
        await world.gate.wait()
        world.shelf.lose()
        await trio.sleep(10)
        assert (len(world.shelf.lists), world.shelf.open) == (2, 1)
        world.shelf.put(name("x"))
        await trio.sleep(10)
        assert list(world.table.manifest) == [name("x")]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.trio
async def test_a_change_that_a_dead_life_did_not_tell_is_told_by_the_next(autojump_clock: object) -> None:
    """The overlay remembers; the status of the last life is not overwritten with an idle one."""
    world = World()
    async with world.running() as tree:
        await world.gate.wait()
        world.table.changed = True
        await tree.restart("root/wheel-syncer")
        await trio.sleep(1)
        assert world.changes == 1
        assert [each.last_result for each in world.statuses] == ["idle", "ok", "ok"]


def test_the_wheel_syncer_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, the directory is free."""
    worlds: list[World] = []

    def make() -> WheelSyncer:
        world = World()
        world.shelf.put(name("x"))
        world.shelf.put(name("y"))
        world.shelf.refuse = len(worlds) % 3
        world.table.bad = {name("y")}
        worlds.append(world)
        return world.make()

    stress_start_cancel(make)
    assert not any(world.shelf.open or world.table.claimed or world.link._listeners for world in worlds)


@pytest.mark.trio
async def test_a_gate_for_a_worker_without_sync_is_open(autojump_clock: object) -> None:
    """Nobody waits; opening it again changes nothing."""
    gate = WheelGate(is_open=True)
    await gate.wait()
    gate.open()
    assert gate.is_open
