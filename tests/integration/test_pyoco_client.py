"""The real pyoco-client on a real gateway, worker and nats-server; what people see, in a pseudo-terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # there are stubs, but not among our packages
import pyte
import pytest
from attrs import frozen

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import Gateway, gateway, until
from tests.integration.programs import environment
from tests.integration.worker_client import PATIENCE_SEC, worker

PROGRAM = [sys.executable, "-m", "pyoco_runtime.cli.client.main"]


@frozen
class World:
    """A gateway with a worker, and pyoco-client beside it."""

    gateway: Gateway
    place: Path

    def client(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, without a terminal."""
        return subprocess.run(
            [*PROGRAM, *args],
            cwd=self.place,
            env=environment(**{"PYOCO_SERVER": self.gateway.url, "LC_ALL": "C.UTF-8", **env}),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SEC,
            check=False,
        )

    def ok(self, *args: str) -> str:
        """Its output, if it ends well."""
        done = self.client(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ended(self, flow_name: str = "hello") -> str:
        """The id of a run that has come to its end."""
        run_id = self.gateway.submit(flow_name)
        self.ok("watch", run_id, "--until-terminal")
        return run_id


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("world")
    with (
        nats_server(place / "nats") as nats,
        gateway(place, nats.url) as opened,
        worker(place, nats.url),
    ):
        until(lambda: opened.http.get("/workers").json(), bool)
        yield World(opened, place)


class Screen:
    """A terminal with somebody looking at it."""

    def __init__(self, world: World, *args: str, columns: int = 80, lines: int = 24, **env: str) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        variables = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYOCO_SERVER": world.gateway.url, **env}
        kept = {k: v for k, v in environment(**variables).items() if k not in ("COLUMNS", "LINES")}
        self.raw = b""
        self.child = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *args],
            env=kept,
            cwd=str(world.place),
            dimensions=(lines, columns),
        )

    @property
    def lines(self) -> list[str]:
        """What is on it."""
        return [line.rstrip() for line in self._screen.display]

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """Look until that is seen, or the program ends."""
        deadline = time.monotonic() + PATIENCE_SEC
        while not seen(self.lines):
            assert time.monotonic() < deadline, "\n".join(self.lines)
            if not self._read():
                break
        assert seen(self.lines), "\n".join(self.lines)
        return self.lines

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read():
            pass
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0))

    def _read(self) -> bool:
        try:
            piece = self.child.read_nonblocking(65536, timeout=1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        self._stream.feed(piece)
        return True


def test_a_run_from_submit_to_its_logs(world: World) -> None:
    """Submit, watch, get, tasks, list and logs tell the same story."""
    accepted = json.loads(world.ok("submit", "--flow-name", "hello", "--param", "name=Ada"))
    run_id = accepted["run_id"]
    lines = world.ok("watch", run_id, "--until-terminal", "--output", "status").splitlines()
    assert lines[-1].split("\t")[1:] == ["snapshot", "COMPLETED", run_id]
    run = json.loads(world.ok("get", run_id, "--records"))
    assert run["params"] == {"name": "Ada"}
    assert run["task_records"]["greet"]["output"] == "Hello, Ada!"
    assert json.loads(world.ok("tasks", run_id))["tasks"] == {"greet": "SUCCEEDED", "count": "SUCCEEDED"}
    assert run_id in [each["run_id"] for each in json.loads(world.ok("list", "--flow", "hello"))]
    assert "greet | Hello, Ada!" in world.ok("logs", run_id).splitlines()
    assert "Hello, Ada!" in world.ok("logs", run_id, "--task", "greet", "--follow").splitlines()


def test_a_flow_yaml(world: World) -> None:
    """It brings its own flow."""
    (world.place / "flow.yaml").write_text(
        "version: 1\nflow: {graph: upper, defaults: {text: hello}}\n"
        'tasks: {upper: {callable: "string:capwords", inputs: {s: "$ctx.params.text"}}}\n'
    )
    line = ["submit-yaml", "--workflow-file", "flow.yaml", "--flow-name", "mine", "--tag", "default"]
    run_id = json.loads(world.ok(*line))["run_id"]
    assert "COMPLETED" in world.ok("watch", run_id, "--until-terminal", "--output", "status")


def test_a_batch(world: World) -> None:
    """As many ids as lines."""
    (world.place / "runs.jsonl").write_text('{"flow_name": "hello", "params": {"name": "B"}}\n' * 3)
    ids = world.ok("batch", "runs.jsonl").split()
    assert len(set(ids)) == 3
    for run_id in ids:
        world.ok("watch", run_id, "--until-terminal")


def test_cancel_waits_for_the_end(world: World) -> None:
    """The answer is the run that has stopped."""
    run_id = world.gateway.submit("gate", release=str(world.place / "never"))
    assert json.loads(world.ok("cancel", "--run-id", run_id, "--wait"))["status"] == "CANCELLED"


def test_a_dead_letter_is_replayed_and_dropped(world: World) -> None:
    """From the list to the new run."""
    failed = world.ended("fail")
    until(lambda: json.loads(world.ok("dlq", "list", "--run-id", failed, "--output", "json"))["items"], bool)
    letter = json.loads(world.ok("dlq", "list", "--run-id", failed, "--output", "json"))["items"][0]
    assert "execution_error" in world.ok("dlq", "show", str(letter["seq"]))
    assert json.loads(world.ok("dlq", "replay", str(letter["seq"])))["replay_of"] == letter["seq"]
    assert json.loads(world.ok("dlq", "drop", str(letter["seq"])))["deleted"] is True
    done = world.client("dlq", "show", str(letter["seq"]))
    assert (done.returncode, "[ERR-PYOCO-0036]" in done.stderr) == (1, True)


def test_actors_metrics_and_wheels(world: World) -> None:
    """What operators look at."""
    assert "runtime" in world.ok("actors")
    assert "pyoco_runs_total" in world.ok("metrics")
    assert any(
        each["name"] == "pyoco_workers_alive_total" for each in json.loads(world.ok("metrics", "--output", "json"))
    )
    assert json.loads(world.ok("wheels")) == json.loads(world.ok("wheel-history")) == []


def test_a_run_that_is_not_there(world: World) -> None:
    """In words, with its id and the next step; in Japanese for who wants it."""
    done = world.client("get", "no-such-run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("[pyoco-client][ERR-PYOCO-0005] run not found")
    assert "pyoco-client list" in done.stderr
    assert "run が見つかりません" in world.client("get", "no-such-run", LC_ALL="ja_JP.UTF-8").stderr


def test_a_gateway_that_is_away(world: World) -> None:
    """The address that was tried, and how to start one."""
    done = world.client("--server", "http://127.0.0.1:9", "list")
    assert done.returncode == 1
    assert "[ERR-PYOCO-0001]" in done.stderr
    assert "http://127.0.0.1:9" in done.stderr
    assert "pyoco-server up" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_ends_quietly(world: World) -> None:
    """`| head` is no error."""
    world.ended()
    line = f"{' '.join(PROGRAM)} metrics | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        env=environment(PYOCO_SERVER=world.gateway.url),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


def test_ctrl_c_ends_a_watch(world: World) -> None:
    """130, and no traceback."""
    run_id = world.gateway.submit("gate", release=str(world.place / "never"))
    screen = Screen(world, "watch", run_id, "--until-terminal", "--output", "status", columns=120)
    screen.until(lambda lines: any("snapshot" in line for line in lines))
    screen.child.sendintr()
    assert screen.end() == 130
    assert b"Traceback" not in screen.raw
    world.ok("cancel", "--run-id", run_id, "--wait")


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_the_terminal(world: World, columns: int) -> None:
    """Whole ids, one line each, in colour."""
    run_id = world.ended()
    screen = Screen(world, "list", "--limit", "3", "--output", "table", columns=columns)
    assert screen.end() == 0
    assert screen.lines[0].split()[:2] == ["run_id", "status"]
    assert any(line.startswith(run_id) for line in screen.lines)
    assert b"\x1b[32m" in screen.raw
    workers = Screen(world, "workers", "--output", "table", columns=columns, NO_COLOR="1")
    assert workers.end() == 0
    assert "IDLE" in workers.lines[1]
    assert b"\x1b[3" not in workers.raw


@pytest.mark.parametrize("columns", [80, 120])
def test_top_shows_what_happens_and_leaves_the_terminal_clean(world: World, columns: int) -> None:
    """A run appears without a key being pressed; Ctrl-C gives the screen back."""
    screen = Screen(world, "top", columns=columns)
    screen.until(lambda lines: any("IDLE" in line for line in lines))
    release = world.place / f"release-{columns}"
    run_id = world.gateway.submit("gate", release=str(release))
    screen.until(lambda lines: any(line.startswith(run_id) and "RUNNING" in line for line in lines))
    release.touch()
    screen.until(lambda lines: any(line.startswith(run_id) and "COMPLETED" in line for line in lines))
    screen.child.sendintr()
    assert screen.end() == 130
    assert screen.raw.rstrip().endswith((b"\x1b[?25h", b"\x1b[?1049l"))
    assert b"Traceback" not in screen.raw


def test_top_that_is_asked_to_end_leaves_the_terminal_clean(world: World) -> None:
    """SIGTERM too."""
    screen = Screen(world, "top")
    screen.until(lambda lines: any("IDLE" in line for line in lines))
    os.kill(screen.child.pid, signal.SIGTERM)
    assert screen.end() == 143
    assert b"\x1b[?1049l" in screen.raw


def test_the_doctor_finds_this_house_well(world: World) -> None:
    """No problem, exit 0."""
    done = world.client("doctor", "--output", "json")
    assert done.returncode == 0, done.stdout
    assert {each["subject"] for each in json.loads(done.stdout)} >= {"server", "clock", "nats", "resources", "workers"}
