"""The overlay directory with an installer that only copies: generations, the manifest, crashes and bad wheels."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio
import pytest

from pyoco_runtime import wheel_overlay
from pyoco_runtime.errors import WheelSyncFailed
from pyoco_runtime.model.wheels import Outcome, WheelInfo, plan_sync
from pyoco_runtime.wheel_overlay import Installer, WheelOverlay, find_installer

Store = dict[str, bytes]
Run = Callable[[Callable[[], Awaitable[None]]], None]


class Copier(Installer):
    """Copies the files; one that says `bad` fails, `crowd` fails beside others, `slow` is cancelled midway."""

    async def install(self, files: Iterable[Path], target: Path, timeout_sec: float) -> None:
        for file in files:
            shutil.copy(file, target)
            match file.read_bytes():
                case b"bad":
                    raise WheelSyncFailed(f"{file.name} is bad")
                case b"slow":
                    CANCELLED[-1].cancel()
                    await anyio.sleep_forever()
                case b"crowd" if len(os.listdir(target)) > 1:
                    raise WheelSyncFailed("no room for two")


COPIER = Copier("copier", ())
CANCELLED: list[anyio.CancelScope] = []


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run an async test on each backend; threads are used, so the time is real."""
    return lambda test: anyio.run(test, backend=request.param)


def overlay_in(directory: Path, in_use: Callable[[], tuple[Path, ...]] = tuple) -> WheelOverlay:
    return WheelOverlay(directory, install_timeout_sec=60, installer=COPIER, clock=lambda: 7.0, in_use=in_use)


def name(package: str, version: int) -> str:
    return f"{package}-{version}-py3-none-any.whl"


async def sync(overlay: WheelOverlay, store: Store) -> Outcome:
    """What the actor does; the nuid of a wheel is its content."""
    local = await overlay.inspect()
    stored = [WheelInfo(name=each, nuid=data.decode(), size_bytes=len(data)) for each, data in store.items()]
    plan = plan_sync(stored, (), local)
    if not plan.to_install and not plan.to_remove:
        return Outcome(local.manifest)
    for choice in plan.to_install:
        await anyio.Path(overlay.incoming(choice.name)).write_bytes(store[choice.name])
    return await overlay.install(
        plan, local, {choice.name: overlay.incoming(choice.name) for choice in plan.to_install}
    )


def seen(overlay: WheelOverlay) -> Store:
    """The wheels that a child would see."""
    return {file.name: file.read_bytes() for path in overlay.paths() for file in path.glob("*.whl")}


def files(directory: Path) -> set[str]:
    return {file.name for file in directory.glob("*.whl")}


def generations(directory: Path) -> set[str]:
    return {each.name for each in (directory / "overlay").iterdir() if each.is_dir() and each.name != "incoming"}


def test_a_sync_from_nothing_to_nothing(run: Run, tmp_path: Path) -> None:
    """Install, do nothing, change one, remove all; children see each whole set, and hear of each change once."""

    async def test() -> None:
        overlay = overlay_in(tmp_path / "deep" / "wheels")
        assert (overlay.paths(), overlay.take_change()) == ((), False)
        first = {name("x", 1): b"one", name("y", 1): b"two"}
        outcome = await sync(overlay, first)
        assert (outcome.updated, outcome.removed, outcome.problems) == (tuple(first), (), {})
        assert (seen(overlay), overlay.take_change(), overlay.take_change()) == (first, True, False)
        assert (await sync(overlay, first)).updated == ()
        assert not overlay.take_change()
        second = {name("x", 2): b"three", name("y", 1): b"two"}
        outcome = await sync(overlay, second)
        assert (outcome.updated, outcome.removed) == ((name("x", 2),), (name("x", 1),))
        assert (seen(overlay), overlay.take_change()) == (second, True)
        assert files(tmp_path / "deep" / "wheels") == set(second)
        assert (await sync(overlay, {})).removed == tuple(second)
        assert (overlay.paths(), overlay.take_change()) == ((), True)

    run(test)


def test_the_manifest_on_disk(run: Run, tmp_path: Path) -> None:
    """The peer's fields, and no half-written file beside it."""

    async def test() -> None:
        await sync(overlay_in(tmp_path), {name("x", 1): b"one"})
        assert json.loads((tmp_path / ".installed.json").read_bytes()) == {
            name("x", 1): {
                "nuid": "one",
                "package_name": "x",
                "package_version": "1",
                "size_bytes": 3,
                "sha256_hex": hashlib.sha256(b"one").hexdigest(),
                "tags": [],
                "installed_at": 7.0,
            }
        }
        assert not [each for each in os.listdir(tmp_path) if each.endswith(".new")]

    run(test)


def test_a_new_process_goes_on_where_the_last_one_stopped(run: Run, tmp_path: Path) -> None:
    """Children see the wheels before the first sync, and that one has nothing to do."""

    async def test() -> None:
        store = {name("x", 1): b"one"}
        first = overlay_in(tmp_path)
        await sync(first, store)
        first.release()
        second = overlay_in(tmp_path)
        assert seen(second) == store
        assert (await sync(second, store)).updated == ()
        assert not second.take_change()

    run(test)


def test_a_bad_wheel_leaves_the_old_one_and_lets_the_others_in(run: Run, tmp_path: Path) -> None:
    """Its old version stays with its file until a good one comes; a bad one alone changes nothing."""

    async def test() -> None:
        overlay = overlay_in(tmp_path)
        await sync(overlay, {name("x", 1): b"one", name("y", 1): b"two"})
        store = {name("x", 2): b"bad", name("y", 2): b"more", name("z", 1): b"new"}
        outcome = await sync(overlay, store)
        assert outcome.problems == {name("x", 2): f"{name('x', 2)} is bad"}
        assert (outcome.updated, outcome.removed) == ((name("y", 2), name("z", 1)), (name("y", 1),))
        there = {name("x", 1): b"one", name("y", 2): b"more", name("z", 1): b"new"}
        assert (seen(overlay), files(tmp_path), overlay.take_change()) == (there, set(there), True)
        again = await sync(overlay, store)
        assert (again.updated, again.removed, list(again.problems)) == ((), (), [name("x", 2)])
        assert (seen(overlay), overlay.take_change()) == (there, False)
        cured = await sync(overlay, {**store, name("x", 2): b"good"})
        assert (cured.updated, cured.removed, cured.problems) == ((name("x", 2),), (name("x", 1),), {})
        assert seen(overlay)[name("x", 2)] == b"good"

    run(test)


def test_a_bad_upload_under_the_same_name_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    """The download does not overwrite what is installed."""

    async def test() -> None:
        overlay = overlay_in(tmp_path)
        await sync(overlay, {name("x", 1): b"one"})
        assert (await sync(overlay, {name("x", 1): b"bad"})).problems
        assert seen(overlay) == {name("x", 1): b"one"}
        assert (tmp_path / name("x", 1)).read_bytes() == b"one"

    run(test)


def test_a_set_that_fails_though_each_is_fine_changes_nothing(run: Run, tmp_path: Path) -> None:
    """It is nobody's fault that could be left out: the sync fails, and nothing of it is left."""

    async def test() -> None:
        overlay = overlay_in(tmp_path)
        await sync(overlay, {name("a", 1): b"one"})
        with pytest.raises(WheelSyncFailed, match="no room for two"):
            await sync(overlay, {name("a", 1): b"one", name("b", 1): b"crowd", name("c", 1): b"more"})
        assert seen(overlay) == {name("a", 1): b"one"}
        assert generations(tmp_path) == {"1"}
        assert files(tmp_path) == {name("a", 1)}

    run(test)


def test_a_cancelled_sync_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    """The half-built generation is gone and the old one in use."""

    async def test() -> None:
        overlay = overlay_in(tmp_path)
        await sync(overlay, {name("x", 1): b"one"})
        with anyio.CancelScope() as scope:
            CANCELLED.append(scope)
            await sync(overlay, {name("x", 2): b"slow"})
        assert generations(tmp_path) == {"1"}
        assert seen(overlay) == {name("x", 1): b"one"}
        assert (await sync(overlay, {name("x", 2): b"two"})).updated

    run(test)


def test_generations_that_nobody_needs_are_deleted(run: Run, tmp_path: Path) -> None:
    """The one in use, the one before and those of living children stay."""

    async def test() -> None:
        in_use: list[Path] = []
        overlay = overlay_in(tmp_path, lambda: tuple(in_use))
        for version in range(1, 8):
            await sync(overlay, {name("x", version): b"%d" % version})
            if version == 2:
                in_use.extend(overlay.paths())
        assert generations(tmp_path) == {"2", "6", "7"}
        in_use.clear()
        await sync(overlay, {name("x", 8): b"8"})
        assert generations(tmp_path) == {"7", "8"}

    run(test)


def _break_manifest(directory: Path) -> None:
    (directory / ".installed.json").write_text("{")


def _lose_manifest(directory: Path) -> None:
    (directory / ".installed.json").unlink()


def _break_pointer(directory: Path) -> None:
    (directory / "overlay" / "current").write_bytes(b"\xff../..")


def _point_nowhere(directory: Path) -> None:
    (directory / "overlay" / "current").write_text("77")


def _break_contents(directory: Path) -> None:
    (directory / "overlay" / "1" / ".wheels.json").write_text("[]")


def _lose_generation(directory: Path) -> None:
    shutil.rmtree(directory / "overlay" / "1")


def _cut_file(directory: Path) -> None:
    (directory / name("x", 1)).write_bytes(b"o")


def _change_file(directory: Path) -> None:
    (directory / name("x", 1)).write_bytes(b"eno")


def _lose_file(directory: Path) -> None:
    (directory / name("x", 1)).unlink()


def _bring_the_peers(directory: Path) -> None:
    """pyoco-server was here: it installs elsewhere, and has no overlay."""
    shutil.rmtree(directory / "overlay")


@pytest.mark.parametrize(
    "harm",
    [
        _break_manifest,
        _lose_manifest,
        _break_pointer,
        _point_nowhere,
        _break_contents,
        _lose_generation,
        _cut_file,
        _change_file,
        _lose_file,
        _bring_the_peers,
    ],
)
def test_whatever_is_broken_is_mended_by_the_next_sync(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """A crash or a person may leave anything; the store has it all."""

    async def test() -> None:
        first = overlay_in(tmp_path)
        store = {name("x", 1): b"one", name("y", 1): b"two"}
        await sync(first, store)
        first.release()
        harm(tmp_path)
        overlay = overlay_in(tmp_path)
        outcome = await sync(overlay, store)
        assert name("x", 1) in outcome.updated
        assert set(outcome.manifest) == set(store)
        assert seen(overlay) == store
        assert files(tmp_path) == set(store)
        assert (await sync(overlay, store)).updated == ()

    anyio.run(test, backend="trio")


def test_killed_between_the_pointer_and_the_manifest(tmp_path: Path) -> None:
    """The next sync finds the generation built, brings the rest up to date and forgets the old file."""

    async def test() -> None:
        first = overlay_in(tmp_path)
        await sync(first, {name("x", 1): b"one"})
        before = (tmp_path / ".installed.json").read_bytes()
        await sync(first, {name("x", 2): b"two"})
        first.release()
        (tmp_path / ".installed.json").write_bytes(before)
        (tmp_path / name("x", 2)).rename(tmp_path / name("x", 1))
        overlay = overlay_in(tmp_path)
        outcome = await sync(overlay, {name("x", 2): b"two"})
        assert (outcome.updated, outcome.removed) == ((name("x", 2),), (name("x", 1),))
        assert files(tmp_path) == {name("x", 2)}
        assert not overlay.take_change()

    anyio.run(test, backend="trio")


def test_two_workers_do_not_share_a_directory(tmp_path: Path) -> None:
    """The second says who has it and what to do, sees the wheels all the same, and takes over when it is free."""

    async def test() -> None:
        first, second = overlay_in(tmp_path), overlay_in(tmp_path)
        await sync(first, {name("x", 1): b"one"})
        with pytest.raises(WheelSyncFailed, match=rf"pid {os.getpid()}\): give each worker.*PYOCO_WHEEL_SYNC_DIR"):
            await second.inspect()
        assert (seen(second), second.take_change()) == ({name("x", 1): b"one"}, True)
        first.release()
        first.release()
        assert (await sync(second, {name("x", 1): b"one"})).updated == ()

    anyio.run(test, backend="trio")


def test_a_directory_that_cannot_be_is_a_failed_sync(tmp_path: Path) -> None:
    """Not a crash; the text says which setting to change."""
    (tmp_path / "file").write_text("in the way")
    overlay = overlay_in(tmp_path / "file" / "wheels")
    assert overlay.paths() == ()

    async def test() -> None:
        with pytest.raises(WheelSyncFailed, match="PYOCO_WHEEL_SYNC_DIR") as caught:
            await overlay.inspect()
        assert caught.value.err_id == "ERR-PYOCO-0024"

    anyio.run(test, backend="trio")


def test_a_full_disk_is_a_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the old wheels stay in use."""

    async def test() -> None:
        overlay = overlay_in(tmp_path)
        await sync(overlay, {name("x", 1): b"one"})

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(WheelSyncFailed, match="No space left"):
                await sync(overlay, {name("x", 2): b"two"})
        assert seen(overlay) == {name("x", 1): b"one"}
        assert (await sync(overlay, {name("x", 2): b"two"})).updated

    anyio.run(test, backend="trio")


def test_the_installer_is_uv_or_else_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own uv, then the one on the PATH, then pip; with none of them the text says what to do."""
    installed = {"uv", "pip"}
    on_path: dict[str, str] = {"uv": "/opt/uv"}
    monkeypatch.setattr(wheel_overlay, "_is_installed", installed.__contains__)
    monkeypatch.setattr(shutil, "which", on_path.get)
    assert find_installer().command[1:4] == ("-P", "-m", "uv")
    installed.remove("uv")
    assert find_installer().command[0] == "/opt/uv"
    on_path.clear()
    assert find_installer().name == "pip"
    installed.clear()
    with pytest.raises(WheelSyncFailed, match="ensurepip"):
        find_installer()
