"""The published pyoco-server 0.5.1: its programs as processes, and its client library in an interpreter of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from attrs import field, frozen

from tests.integration.gateway_client import client_of, until
from tests.integration.programs import environment
from tests.integration.worker_client import PATIENCE_SEC

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv-peers" / "bin"
CALLS = Path(__file__).with_name("peer_calls.py")
FLOWS = Path(__file__).with_name("flows.py")
ADVICE = "the published pyoco-server is not installed; make it with: make .venv-peers/.ready"


def require() -> None:
    """Fail, and say how to mend it, if the peer is not there: a suite that skips itself proves nothing."""
    assert (BIN / "pyoco-server").exists(), ADVICE


class PeerProcess:
    """A program of the peer that runs until it is stopped; all that it prints goes to a file."""

    def __init__(self, name: str, *args: str, cwd: Path, env: dict[str, str]) -> None:
        self._log = cwd / f"{name}.{uuid.uuid4().hex[:6]}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [str(BIN / name), *args], cwd=cwd, env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def printed(self) -> str:
        """All so far."""
        return self._log.read_text()

    def wait_printed(self, pattern: str) -> re.Match[str]:
        """Wait until it has printed this."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.printed()}"
            return re.search(pattern, self.printed())

        found = until(look, bool)
        assert found is not None
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for its end; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SEC)

    def close(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()


@frozen
class PeerGateway:
    """A gateway of the peer and a client of it."""

    process: PeerProcess
    url: str
    http: httpx.Client = field(repr=False)


@contextmanager
def peer_gateway(cwd: Path, nats_url: str, port: str = "0", **env: str) -> Iterator[PeerGateway]:
    """Run a gateway of the peer; it serves when the block begins."""
    args = ("up", "--host", "127.0.0.1", "--port", port, "--nats-url", nats_url, "--log-level", "info")
    process = PeerProcess("pyoco-server", *args, cwd=cwd, env=environment(**env))
    try:
        url = process.wait_printed(r"Uvicorn running on (http://\S+)")[1]
        with client_of(url) as http:
            yield PeerGateway(process, url, http)
    finally:
        process.close()


@contextmanager
def peer_worker(cwd: Path, nats_url: str, *args: str, name: str, tags: str, **env: str) -> Iterator[PeerProcess]:
    """Run a worker of the peer with the flows of this folder; whoever needs it waits for its record."""
    fixed = ("--nats-url", nats_url, "--worker-id", name, "--tags", tags, "--flow-resolver", f"{FLOWS}:resolve")
    process = PeerProcess("pyoco-worker", *fixed, *args, cwd=cwd, env=environment(**env))
    try:
        yield process
    finally:
        process.close()


def run_peer(
    program: str, *args: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program of the peer to its end."""
    return subprocess.run(
        [str(BIN / program), *args],
        cwd=cwd,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )


@frozen
class Call:
    """A call of a method of the peer's PyocoHttpClient."""

    method: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(factory=dict)


def call(method: str, *args: Any, **kwargs: Any) -> Call:
    """Write a call as it is written in Python."""
    return Call(method, args, kwargs)


def library(url: str, *calls: Call, api_key: str | None = None) -> list[Any]:
    """What the methods return, one after the other; an error is {"error": its type, "status": of the answer or null}.

    Text that begins with `base64:` reaches the method as bytes, and `watch_run` gives the list of its events up to
    a terminal one.
    """
    order = {"url": url, "api_key": api_key, "calls": [[each.method, each.args, each.kwargs] for each in calls]}
    done = subprocess.run(
        [str(BIN / "python"), str(CALLS)],
        input=json.dumps(order),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers
