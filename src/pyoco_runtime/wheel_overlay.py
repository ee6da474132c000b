"""The overlay of a worker: the directory that its wheels are installed into, and its children prepend to sys.path."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import frozen
from packaging.tags import sys_tags

from pyoco_runtime.errors import WheelSyncFailed
from pyoco_runtime.model.wheels import (
    InstalledWheel,
    Local,
    Manifest,
    Outcome,
    Part,
    Plan,
    compose,
    manifest_from,
    manifest_to,
    wheel_name_from,
)
from pyoco_runtime.ports import Clock

OUTPUT_LIMIT = 2000  # characters of what an installer said last
MANIFEST = ".installed.json"
HOLDS = ".wheels.json"  # in a generation: what it holds, name -> nuid


class WheelOverlay:
    """The sync directory of one worker process. It belongs to the tree and outlives the lives of the wheel syncer.

    sync_dir/
      .installed.json      the manifest, in the peer's format
      *.whl                the installed wheels
      overlay/current      the name of the generation in use
      overlay/<n>/         a generation: all wheels of one sync, installed together
      overlay/incoming/    downloads that are not installed yet
      overlay/lock         held by the process that syncs here

    A generation is built aside and never changed afterwards: the children of the old one are not disturbed.
    """

    def __init__(
        self,
        sync_dir: Path,
        *,
        install_timeout_sec: float,
        installer: Installer | None = None,
        clock: Clock = time.time,
        in_use: Callable[[], Collection[Path]] = tuple,
    ) -> None:
        """`installer`: None takes uv, or else pip. `in_use` tells the paths that living children were started with."""
        self._dir = sync_dir.absolute()
        self._overlay = self._dir / "overlay"
        self._install_timeout_sec = install_timeout_sec
        self._installer = installer
        self._clock = clock
        self._in_use = in_use
        self._supported: frozenset[str] | None = None
        self._lock: int | None = None
        self._told = self.paths()

    def paths(self) -> tuple[Path, ...]:
        """What a child that starts now prepends to its sys.path; empty if there is nothing."""
        current = self._current()
        return (current,) if current and _holds(current) else ()

    def take_change(self) -> bool:
        """Whether `paths` has changed since this was last asked. Survives a crash of whoever asks."""
        before, self._told = self._told, self.paths()
        return before != self._told

    def incoming(self, name: str) -> Path:
        """Where the download of that wheel goes; the directory is there after `inspect`."""
        return self._overlay / "incoming" / name

    async def inspect(self) -> Local:
        """Claim the directory and see what is there. Raises WheelSyncFailed."""
        return await anyio.to_thread.run_sync(self._inspect)

    async def install(self, plan: Plan, local: Local, downloads: Mapping[str, Path]) -> Outcome:
        """Carry out the plan with what was downloaded of it; a bad wheel leaves the old one. Raises WheelSyncFailed."""
        parts = compose(plan, local.manifest, downloads)
        problems: dict[str, str] = {}
        try:
            generation = await self._build(parts)
        except WheelSyncFailed as error:
            problems = await self._find_bad(downloads, error)
            parts = compose(plan, local.manifest, downloads.keys() - problems.keys())
            generation = await self._build(parts)
        kept = {generation, self._current(), *self._in_use()}
        # in a thread, which cannot be cancelled midway
        manifest = await anyio.to_thread.run_sync(self._commit, plan, local, parts, generation, kept)
        updated = tuple(part.name for part in parts if part.is_new)
        return Outcome(manifest, updated, _removed(plan, manifest), problems)

    def release(self) -> None:
        """Let another process sync here."""
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing is not enough: a process forked from us may have a copy
            os.close(self._lock)
            self._lock = None

    # -- what is there

    def _inspect(self) -> Local:
        with _translating("read"):
            self._claim()
            shutil.rmtree(self._overlay / "incoming", ignore_errors=True)
            (self._overlay / "incoming").mkdir()
            if self._supported is None:
                self._supported = frozenset(map(str, sys_tags()))
            present = frozenset(each.name for each in self._dir.glob("*.whl") if wheel_name_from(each.name))
            return Local(self._supported, self._installed(), present)

    def _claim(self) -> None:
        """Two processes in one directory would remove each other's wheels."""
        if self._lock is not None:
            return
        self._overlay.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._overlay / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
            os.close(lock)
            raise WheelSyncFailed(
                f"the wheel directory {self._dir} is in use by another worker (pid {pid or 'unknown'}): give each"
                " worker on a machine its own PYOCO_WHEEL_SYNC_DIR"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        self._lock = lock

    def _installed(self) -> Manifest:
        """Of the manifest what is true: the generation in use holds it, and its file is whole."""
        held = _holds(self._current())
        return {
            name: entry
            for name, entry in self._manifest().items()
            if held.get(name) == entry.nuid and _is_whole(self._dir / name, entry)
        }

    def _manifest(self) -> Manifest:
        try:
            return manifest_from((self._dir / MANIFEST).read_bytes())
        except OSError:
            return {}

    def _current(self) -> Path | None:
        try:
            name = (self._overlay / "current").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return self._overlay / name if name.isdecimal() else None

    def _generations(self) -> list[Path]:
        return [each for each in self._overlay.iterdir() if each.name.isdecimal()]

    # -- building

    async def _build(self, parts: tuple[Part, ...]) -> Path | None:
        """A new generation of these parts, not in use yet; None if the one in use is just that."""
        current = self._current()
        holds = {part.name: part.nuid for part in parts}
        if holds == _holds(current):
            return None
        with _translating("write to"):
            generation = self._overlay / str(max([int(each.name) for each in self._generations()], default=0) + 1)
        await self._install_into(generation, [self._file(part) for part in parts])
        with _translating("write to"):
            _write(generation / HOLDS, json.dumps(holds).encode())
        return generation

    def _file(self, part: Part) -> Path:
        return self.incoming(part.name) if part.is_new else self._dir / part.name

    async def _install_into(self, target: Path, files: list[Path]) -> None:
        is_done = False
        try:
            _make(target)
            if files:
                installer = self._installer or find_installer()
                await installer.install(files, target, self._install_timeout_sec)
            is_done = True
        finally:
            if not is_done:  # also when cancelled: half a generation is of no use to anybody
                await _delete(target)

    async def _find_bad(self, downloads: Mapping[str, Path], error: WheelSyncFailed) -> dict[str, str]:
        """Which of the new wheels cannot be installed. The old ones could be, so a single new one is to blame."""
        if len(downloads) == 1:
            return dict.fromkeys(downloads, str(error))
        bad = {}
        trial = self._overlay / "incoming" / "trial"
        for name, file in downloads.items():
            try:
                await self._install_into(trial, [file])
            except WheelSyncFailed as problem:
                bad[name] = str(problem)
            await _delete(trial)
        if not bad:
            raise error  # one by one they are fine, so it is not a wheel's fault
        return bad

    # -- putting it to use

    def _commit(
        self, plan: Plan, local: Local, parts: tuple[Part, ...], generation: Path | None, kept: set[Path | None]
    ) -> Manifest:
        """The pointer first: what a crash leaves undone after it is seen by the next `inspect` and done again."""
        with _translating("write to"):
            if generation is not None:
                _write(self._overlay / "current", generation.name.encode())
            manifest = self._manifest_of(plan, local, parts)
            _write(self._dir / MANIFEST, manifest_to(manifest))
            for name in _removed(plan, manifest):
                (self._dir / name).unlink(missing_ok=True)
            if generation is not None:
                self._collect(kept)
        return manifest

    def _manifest_of(self, plan: Plan, local: Local, parts: tuple[Part, ...]) -> Manifest:
        """Entries for the parts; the files of new ones take their place."""
        choices = {choice.name: choice for choice in plan.to_install}
        manifest = {}
        for part in parts:
            if not part.is_new:
                manifest[part.name] = local.manifest[part.name]
                continue
            file = self._dir / part.name
            os.replace(self.incoming(part.name), file)
            manifest[part.name] = InstalledWheel(
                nuid=part.nuid,
                package_name=choices[part.name].package_name,
                package_version=choices[part.name].package_version,
                size_bytes=file.stat().st_size,
                sha256_hex=_sha256(file),
                tags=tuple(sorted(choices[part.name].info.tags)),
                installed_at=self._clock(),
            )
        return manifest

    def _collect(self, kept: set[Path | None]) -> None:
        """Delete the generations that nobody needs; what cannot be deleted is tried again next time."""
        for generation in self._generations():
            if generation not in kept:
                shutil.rmtree(generation, ignore_errors=True)


def _removed(plan: Plan, manifest: Manifest) -> tuple[str, ...]:
    """Not those that stay because their successors are bad."""
    return tuple(name for name in plan.to_remove if name not in manifest)


# -- files ------------------------------------------------------------------------------------------------------------


def _holds(generation: Path | None) -> dict[str, str]:
    if generation is None:
        return {}
    try:
        found = json.loads((generation / HOLDS).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_whole(file: Path, entry: InstalledWheel) -> bool:
    try:
        return file.stat().st_size == entry.size_bytes and _sha256(file) == entry.sha256_hex
    except OSError:
        return False


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _make(directory: Path) -> None:
    with _translating("write to"):
        directory.mkdir()


async def _delete(directory: Path) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(partial(shutil.rmtree, directory, ignore_errors=True))


def _write(file: Path, data: bytes) -> None:
    """All or nothing, whoever reads it and whenever we are killed."""
    beside = file.with_name(f"{file.name}.new")
    beside.write_bytes(data)
    os.replace(beside, file)


@contextmanager
def _translating(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WheelSyncFailed(
            f"cannot {what} the wheel directory ({error}): make room or set PYOCO_WHEEL_SYNC_DIR to a directory that"
            " this worker may write to"
        ) from error


# -- the installer ----------------------------------------------------------------------------------------------------


@frozen
class Installer:
    """A program that installs wheel files into a directory, without dependencies and without the network."""

    name: str
    command: tuple[str, ...]

    async def install(self, files: Iterable[Path], target: Path, timeout_sec: float) -> None:
        """Install them all together; killed after `timeout_sec`. Raises WheelSyncFailed."""
        command = [*self.command, "--target", str(target), *map(str, files)]
        try:
            with anyio.fail_after(timeout_sec):
                done = await anyio.run_process(
                    command,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    stderr=subprocess.STDOUT,
                    env=_environment(),
                    start_new_session=True,  # a Ctrl-C in the terminal is for us
                )
        except TimeoutError:
            raise WheelSyncFailed(
                f"{self.name} did not end within {timeout_sec:g} s (PYOCO_WHEEL_INSTALL_TIMEOUT_SEC) and was killed"
            ) from None
        except OSError as error:
            raise WheelSyncFailed(f"{self.name} cannot be started: {error}") from error
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace").strip()[-OUTPUT_LIMIT:]
            raise WheelSyncFailed(f"{self.name} failed with exit code {done.returncode}: {said}")


_COMMON = ("--no-deps", "--no-index")


def uv(*program: str) -> Installer:
    """Install with this uv; without its cache, which could hold an older file of the same name."""
    options = ("--offline", "--no-config", "--no-cache", "--link-mode", "copy", "--python", sys.executable)
    return Installer("uv", (*program, "pip", "install", *_COMMON, *options))


def pip() -> Installer:
    """Install with the pip of this interpreter."""
    options = ("--no-cache-dir", "--no-compile", "--no-input", "--disable-pip-version-check")
    # -P: a pip.py in the working directory is not pip
    return Installer("pip", (sys.executable, "-P", "-m", "pip", "--isolated", "install", *_COMMON, *options))


def find_installer() -> Installer:
    """The uv of this interpreter, or one on the PATH, or else pip. Raises WheelSyncFailed."""
    if _is_installed("uv"):
        return uv(sys.executable, "-P", "-m", "uv")
    if program := shutil.which("uv"):
        return uv(program)
    if _is_installed("pip"):
        return pip()
    raise WheelSyncFailed("there is neither uv nor pip to install wheels with: add one with `python -m ensurepip`")


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _environment() -> dict[str, str]:
    """Ours without settings for installers: one such as PIP_USER would send the wheels elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
