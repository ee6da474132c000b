"""The real program in a process of its own, for the end-to-end tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

BIN = Path(sys.executable).parent
LIMIT_SEC = 60


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of ours, and with these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYOCO_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **more}


def run(*args: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [str(BIN / "pyoco-runtime"), *args],
        cwd=cwd,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_SEC,
        check=False,
    )


class Program:
    """A running pyoco-runtime whose JSON log is read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    def until(self, text: str) -> dict[str, Any]:
        """Read the log until a message contains `text`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if text in self.lines[-1]["message"]:
                return self.lines[-1]
        assert self.process.stderr is not None
        raise AssertionError(f"{text!r} was never logged; stderr: {self.process.stderr.read()}; log: {self.lines[-5:]}")

    def url(self) -> str:
        """Where it serves HTTP."""
        return str(self.until("is listening on")["message"].rpartition(" ")[2])

    def stop(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Read the rest of the log and wait for the end."""
        out, _ = self.process.communicate(timeout=LIMIT_SEC)
        self.lines += [json.loads(line) for line in out.splitlines() if line]
        return self.process.returncode


@contextmanager
def program(cwd: Path, *args: str, prefix: Sequence[str] = (), **env: str) -> Iterator[Program]:
    """Start pyoco-runtime; it is killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        [*prefix, str(BIN / "pyoco-runtime"), *args],
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


def nats_url_of(started: Program) -> str:
    """The address of the embedded server, from its log."""
    line = next(line for line in started.lines if "Listening for client connections on" in line["message"])
    return "nats://" + str(line["message"]).rpartition(" ")[2]


def trees(nats_url: str, cwd: Path) -> list[dict[str, Any]]:
    """What `pyoco-runtime actors` says, as data."""
    done = run("actors", "--nats-url", nats_url, "--output", "json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def flat(tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A tree as a mapping from path to actor."""
    found = {tree["path"]: tree}
    for child in tree["children"]:
        found.update(flat(child))
    return found


def wait_ready(url: str, within_sec: float = 10.0) -> None:
    """Ask until it is ready: a moment after the connection its indexes have caught up, of which HTTP has no event."""
    deadline = time.monotonic() + within_sec
    while (answer := httpx.get(f"{url}/ready")).status_code != 200:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)
