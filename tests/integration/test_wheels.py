"""Wheels installed for real, with uv and with pip, and seen by fresh processes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from pyoco_runtime.actors.wheel_syncer import WheelSyncer
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.errors import WheelSyncFailed
from pyoco_runtime.model.wheels import WheelInfo
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.testing.memory_link import MemoryLink
from pyoco_runtime.wheel_gate import WheelGate
from pyoco_runtime.wheel_overlay import Installer, WheelOverlay, pip, uv

BACKENDS: dict[str, dict[str, Any]] = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}
INSTALLERS = {"uv": uv(sys.executable, "-m", "uv"), "pip": pip()}
Run = Callable[[Callable[[], Awaitable[None]]], None]

LOOK = """
import importlib, importlib.metadata, json, sys
sys.path[:0] = json.loads(sys.argv[1])
found = {}
for name in sys.argv[2:]:
    try:
        found[name] = importlib.import_module(name).answer()
    except ModuleNotFoundError:
        found[name] = None
found["plugins"] = {e.name: e.load()() for e in importlib.metadata.entry_points(group="pyoco_test.plugins")}
print(json.dumps(found))
"""


LATE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
input()
import pyoco_w
print(pyoco_w.answer())
"""


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run an async test on each backend, and not longer than a minute."""

    def run(test: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            with anyio.fail_after(60):
                await test()

        anyio.run(limited, **BACKENDS[request.param])

    return run


@pytest.fixture(params=INSTALLERS)
def installer(request: pytest.FixtureRequest) -> Installer:
    return INSTALLERS[request.param]


def wheel_of(package: str, version: str) -> bytes:
    """A small wheel: one module that answers with its version, and a plug-in; it needs something that nobody has."""
    info = f"{package}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: pyoco-nobody-has-this\n"
    content = {
        f"{package}/__init__.py": f"def answer():\n    return {version!r}\n",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[pyoco_test.plugins]\n{package} = {package}:answer\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in content.items())
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def name(package: str, version: str) -> str:
    return f"{package}-{version}-py3-none-any.whl"


def look(overlay: WheelOverlay, *packages: str) -> dict[str, Any]:
    """What a fresh process with the overlay in its path sees."""
    paths = json.dumps([str(path) for path in overlay.paths()])
    done = subprocess.run(
        [sys.executable, "-c", LOOK, paths, *packages], capture_output=True, text=True, check=True, timeout=30
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Registry:
    """A store with a watch, in this process."""

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self._changed = anyio.Event()

    def put(self, package: str, version: str, data: bytes) -> None:
        self.wheels[name(package, version)] = data
        self._changed.set()

    def remove(self, package: str, version: str) -> None:
        del self.wheels[name(package, version)]
        self._changed.set()

    async def list(self) -> list[WheelInfo]:
        return [
            WheelInfo(name=each, nuid=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
            for each, data in self.wheels.items()
        ]

    async def download(self, name: str, to: Path) -> None:
        await anyio.Path(to).write_bytes(self.wheels[name])

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Registry]:
        yield self

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed = anyio.Event()


class Worker:
    """The part of a worker that has to do with wheels."""

    def __init__(self, directory: Path, installer: Installer | None, timeout_sec: float = 50) -> None:
        self.registry = Registry()
        self.overlay = WheelOverlay(directory, install_timeout_sec=timeout_sec, installer=installer)
        self.gate = WheelGate()
        self.replaced = 0
        self.statuses: list[WheelSync] = []
        self._reported = anyio.Event()
        self._link = MemoryLink()
        self._link.declare_up()

    def make(self) -> WheelSyncer:
        return WheelSyncer(
            self.registry,
            self.overlay,
            self._link,
            ("a",),
            gate=self.gate,
            interval_sec=3600,
            on_change=self._replace,
            report=self._report,
            clock=lambda: 1.0,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with Supervisor(SupervisorSpec("root", (ActorSpec("wheel-syncer", self.make),))):
            await self.gate.wait()
            yield

    async def synced(self) -> WheelSync:
        """The next status."""
        self._reported = anyio.Event()
        await self._reported.wait()
        return self.statuses[-1]

    def _replace(self) -> None:
        self.replaced += 1

    def _report(self, status: WheelSync) -> None:
        self.statuses.append(status)
        self._reported.set()


def test_the_next_process_sees_the_new_version(run: Run, installer: Installer, tmp_path: Path) -> None:
    """Version 1, then 2, then nothing: modules and entry points; dependencies are not asked for."""

    async def test() -> None:
        worker = Worker(tmp_path, installer)
        worker.registry.put("pyoco_w", "1", wheel_of("pyoco_w", "1"))
        async with worker.running():
            assert worker.statuses[-1].last_result == "ok"
            assert look(worker.overlay, "pyoco_w") == {"pyoco_w": "1", "plugins": {"pyoco_w": "1"}}
            worker.registry.put("pyoco_w", "2", wheel_of("pyoco_w", "2"))
            status = await worker.synced()
            assert (status.updated_wheels, status.removed_wheels) == (
                (name("pyoco_w", "2"),),
                (name("pyoco_w", "1"),),
            )
            assert look(worker.overlay, "pyoco_w") == {"pyoco_w": "2", "plugins": {"pyoco_w": "2"}}
            worker.registry.remove("pyoco_w", "1")
            worker.registry.remove("pyoco_w", "2")
            await worker.synced()
            assert look(worker.overlay, "pyoco_w") == {"pyoco_w": None, "plugins": {}}
            assert worker.replaced == 3

    run(test)


@pytest.mark.parametrize("kind", ["truncated", "not a zip", "another name inside"])
def test_a_bad_wheel_leaves_the_old_one_working(installer: Installer, tmp_path: Path, kind: str) -> None:
    """The others of the same upload are installed, and the status names the bad one."""
    bad = {
        "truncated": wheel_of("pyoco_w", "2")[:200],
        "not a zip": b"hello",
        "another name inside": wheel_of("pyoco_q", "2"),
    }[kind]

    async def test() -> None:
        worker = Worker(tmp_path, installer)
        worker.registry.put("pyoco_w", "1", wheel_of("pyoco_w", "1"))
        async with worker.running():
            worker.registry.put("pyoco_w", "2", bad)
            worker.registry.put("pyoco_v", "1", wheel_of("pyoco_v", "1"))
            status = await worker.synced()
            assert (status.last_result, status.updated_wheels) == ("error", (name("pyoco_v", "1"),))
            assert name("pyoco_w", "2") in (status.last_error or "")
            assert look(worker.overlay, "pyoco_w", "pyoco_v") == {
                "pyoco_w": "1",
                "pyoco_v": "1",
                "plugins": {"pyoco_w": "1", "pyoco_v": "1"},
            }

    anyio.run(test)


def test_an_old_process_keeps_its_wheels(tmp_path: Path) -> None:
    """A child of the generation before can still import what it had not imported yet."""

    async def test() -> None:
        worker = Worker(tmp_path, None)
        worker.registry.put("pyoco_w", "1", wheel_of("pyoco_w", "1"))
        async with worker.running():
            paths = json.dumps([str(path) for path in worker.overlay.paths()])
            child = await anyio.open_process([sys.executable, "-c", LATE, paths], stderr=None)
            assert child.stdin is not None
            assert child.stdout is not None
            worker.registry.put("pyoco_w", "2", wheel_of("pyoco_w", "2"))
            await worker.synced()
            async with child:
                await child.stdin.send(b"go\n")
                assert b"".join([data async for data in child.stdout]).strip() == b"1"

    anyio.run(test)


def test_settings_for_installers_do_not_lead_astray(
    installer: Installer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment tells pip and uv, the wheel goes into the overlay, and a pip.py here is not pip."""
    for variable in ("PIP_USER", "PIP_REQUIRE_HASHES", "UV_REQUIRE_HASHES", "PIP_NO_BINARY"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("raise SystemExit('not pip')")

    async def test() -> None:
        worker = Worker(Path("wheels"), installer)
        worker.registry.put("pyoco_w", "1", wheel_of("pyoco_w", "1"))
        async with worker.running():
            assert worker.statuses[-1].last_error is None
            assert look(worker.overlay, "pyoco_w")["pyoco_w"] == "1"

    anyio.run(test)


def test_an_installer_that_does_not_end_is_killed(run: Run, tmp_path: Path) -> None:
    """After its time, and when the sync is cancelled; the error names the setting."""
    script = "import os, pathlib, sys, time; pathlib.Path(sys.argv[-1]).write_text(str(os.getpid())); time.sleep(600)"
    slow = Installer("slow", (sys.executable, "-c", script))

    async def test() -> None:
        with pytest.raises(WheelSyncFailed, match=r"slow did not end within 1 s .*INSTALL_TIMEOUT.* killed"):
            await slow.install([tmp_path / "pid"], tmp_path, 1)
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
        with anyio.move_on_after(1):
            await slow.install([tmp_path / "pid"], tmp_path, 60)
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    run(test)


def test_an_error_carries_the_end_of_what_the_installer_said(tmp_path: Path) -> None:
    """The last 2000 characters of both streams, and its exit code; one that is not there says so."""
    loud = Installer("loud", (sys.executable, "-c", "import sys; print('x' * 9000, flush=True); sys.exit('the end')"))

    async def test() -> None:
        with pytest.raises(WheelSyncFailed, match=r"loud failed with exit code 1: x+\s+the end$") as caught:
            await loud.install([], tmp_path, 30)
        assert len(str(caught.value)) == 2000 + len("loud failed with exit code 1: ")
        with pytest.raises(WheelSyncFailed, match="gone cannot be started"):
            await Installer("gone", ("/no/such/program",)).install([], tmp_path, 30)

    anyio.run(test)
