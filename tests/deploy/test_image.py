"""The image's steps, run as a script; and what comes out serves, is found healthy and stops."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.deploy.dockerfile import Stage, build, command, environment
from tests.deploy.manifests import ROOT
from tests.integration.programs import Program


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    place = tmp_path_factory.mktemp("image")
    probe = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(place / "probe"), "packaging"]
    if subprocess.run(probe, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("pip finds no package index from here")
    return build((ROOT / "Dockerfile").read_text(), ROOT, place)


def test_it_has_the_program_and_no_tools(image: Stage) -> None:
    """What is needed to make the wheel stayed in the stage that is gone."""
    programs = {path.name for path in (image.root / "opt/pyoco/bin").iterdir()}
    assert {"pyoco-runtime", "pyoco-client", "pyoco-server", "pyoco-worker", "nats-server"} <= programs
    assert not {"hatchling", "pytest", "mypy", "ruff", "uv"} & programs
    assert not (image.root / "build").exists()


def test_it_serves_is_healthy_and_stops_on_sigterm(image: Stage) -> None:
    """By its own ENTRYPOINT, HEALTHCHECK and ENV, on free ports; nothing is written but to its home."""
    before = files(image.root / "opt")
    environ = environment(image, PYOCO_HOST="127.0.0.1", PYOCO_PORT="0", PYOCO_NATS_CLIENT_PORT="0")
    process = subprocess.Popen(
        command(image, "ENTRYPOINT"),
        cwd=image.cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = Program(process)
        url = started.url()
        started.until("connected to NATS")
        assert httpx.get(f"{url}/health", trust_env=False).json() == {"status": "ok"}
        port = url.rpartition(":")[2]
        assert check(image, environ | {"PYOCO_PORT": port}) == 0
        assert started.stop(signal.SIGTERM) == 0
        assert check(image, environ | {"PYOCO_PORT": port}) == 1
    finally:
        process.kill()
        process.communicate()
    assert files(image.root / "opt") == before
    assert (image.cwd / "nats" / "jetstream").is_dir()


def check(image: Stage, environ: dict[str, str]) -> int:
    """The exit code of its HEALTHCHECK."""
    return subprocess.run(command(image, "HEALTHCHECK"), env=environ, timeout=30, check=False).returncode


def files(place: Path) -> set[Path]:
    """Everything below."""
    return set(place.rglob("*"))
