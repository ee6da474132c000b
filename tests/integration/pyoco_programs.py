"""The programs with the published names, in processes of their own, for the end-to-end tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.programs import LIMIT_SEC, Program, environment


def command(name: str, *args: str) -> list[str]:
    """The program by its module: server, worker or admin."""
    return [sys.executable, "-m", f"pyoco_runtime.cli.{name}", *args]


def run(name: str, *args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        command(name, *args),
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=LIMIT_SEC,
        check=False,
    )


@contextmanager
def running(name: str, *args: str, cwd: Path, **env: str) -> Iterator[Program]:
    """Start it; it is killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        command(name, *args),
        cwd=cwd,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        process.communicate()


def admin(nats_url: str, *args: str, cwd: Path, **env: str) -> Any:
    """What `pyoco-server-admin api-key ...` prints, as data."""
    done = run("admin", "--nats-url", nats_url, "api-key", *args, cwd=cwd, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
