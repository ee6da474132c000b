"""`pyoco-runtime demo` as people see it: in a terminal, and where there is none."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it has no types
import pyte
import pytest

from tests.integration.programs import environment

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "pyoco_runtime.cli.main", "demo"]
TASKS = ("read", "count", "longest", "commonest", "join", "greet")
LIMIT_SEC = 60.0
COLUMNS, LINES = 160, 40

pytestmark = pytest.mark.xdist_group("docs")  # `make demo` of the docs has its log in the same place


def _environ(place: Path, **more: str) -> dict[str, str]:
    quiet = {"PYOCO_LOAD_DOTENV": "0", "PYOCO_NATS_STORE_DIR": str(place / "nats"), "LC_ALL": "C.UTF-8"}
    return environment(**{**quiet, "PYOCO_PORT": "0", "PYOCO_NATS_CLIENT_PORT": "0", **more})


class Terminal:
    """A pseudo-terminal with the demo in it, and what its screen shows."""

    def __init__(self, environ: dict[str, str]) -> None:
        environ = {**environ, "TERM": "xterm-256color"}
        environ.pop("COLUMNS", None)
        self.child = pexpect.spawn(
            COMMAND[0], COMMAND[1:], cwd=str(ROOT), env=environ, dimensions=(LINES, COLUMNS), encoding="utf-8"
        )
        self.screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.Stream(self.screen)

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, is_it: Callable[[], bool]) -> None:
        """Read until the screen is like this."""
        deadline = time.monotonic() + LIMIT_SEC
        while not is_it():
            assert time.monotonic() < deadline, self.text
            try:
                self._stream.feed(self.child.read_nonblocking(4096, timeout=LIMIT_SEC))
            except pexpect.EOF:
                assert is_it(), f"it ended:\n{self.text}"

    def green(self) -> list[str]:
        """The tasks whose sign is a green tick."""
        rows = (self.screen.buffer[number] for number in range(LINES))
        ticked = [row for row in rows if (row[0].data, row[0].fg) == ("✔", "green")]
        return ["".join(row[column].data for column in range(3, 12)).strip() for row in ticked]


@contextmanager
def _terminal(environ: dict[str, str]) -> Iterator[Terminal]:
    started = Terminal(environ)
    try:
        yield started
    finally:
        started.child.close(force=True)


def test_the_tasks_turn_green_one_by_one_and_the_commands_work(tmp_path: Path) -> None:
    """In a terminal: nothing of the log is on the screen, and Ctrl-C ends it in order."""
    seen: list[list[str]] = []

    def is_over() -> bool:
        seen.append(terminal.green())
        return "Ctrl-C stops everything" in terminal.text

    with _terminal(_environ(tmp_path)) as terminal:
        terminal.until(is_over)
        assert terminal.green() == list(TASKS)
        assert [number for number in range(7) if list(TASKS[:number]) in seen] == list(range(7))
        assert "COMPLETED after" in terminal.text
        assert "Hello, world! 17 different words" in terminal.text
        assert "INFO" not in terminal.text
        lines = terminal.text.splitlines()
        begin = lines.index("Try next, in another terminal:") + 1
        commands = [line.strip() for line in lines[begin : begin + 3]]
        for command, expected in zip(commands, ("COMPLETED", "run_id", "running"), strict=True):
            done = subprocess.run(
                command, shell=True, cwd=ROOT, env=_environ(tmp_path), capture_output=True, text=True, timeout=LIMIT_SEC
            )
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            assert expected in done.stdout
        terminal.child.sendintr()
        terminal.until(lambda: "Stopped." in terminal.text)
        terminal.child.expect(pexpect.EOF)
        terminal.child.wait()
        assert terminal.child.exitstatus == 130
    assert "http is listening on" in (ROOT / ".pyoco/demo.log").read_text()


def test_without_a_terminal_there_are_plain_lines_and_taken_ports_are_said(tmp_path: Path) -> None:
    """As in CI: a line for every task that started or ended, and no control characters."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        process = subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            env=_environ(tmp_path, PYOCO_PORT=port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            lines = _read_until(process, "Ctrl-C stops everything.")
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=LIMIT_SEC)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0
    assert "Stopped." in rest
    assert f"Port {port} is in use by another program: the gateway takes a free one.\n" in lines
    ended = [line.split()[0] for line in lines if " SUCCEEDED" in line]
    assert ended == list(TASKS)
    assert not any("\x1b" in line for line in lines)


def test_a_second_demo_beside_the_first_has_its_own_store(tmp_path: Path) -> None:
    """It says so, and removes it at the end."""
    environ = _environ(tmp_path)
    with _terminal(environ) as first:
        first.until(lambda: "Submitted" in first.text)
        with _terminal(environ) as second:
            second.until(lambda: "COMPLETED" in second.text)
            said = second.text.replace("\n", "")  # the terminal wraps it
            assert "is in use by another process: this demo keeps its data in" in said
            found = re.search(r"log +(\.pyoco/demo-\S+)\.log", second.text)
            assert found is not None
            store = ROOT / found[1]
            assert store.is_dir()
            second.child.sendintr()
            second.until(lambda: "Stopped." in second.text)
            second.child.expect(pexpect.EOF)
        first.until(lambda: "COMPLETED" in first.text)
        first.child.sendintr()
        first.until(lambda: "Stopped." in first.text)
    assert not store.exists()
    store.with_suffix(".log").unlink()


def test_outside_of_the_repository_it_says_where_to_go(tmp_path: Path) -> None:
    """And leaves nothing behind."""
    done = subprocess.run(
        COMMAND, cwd=tmp_path, env=_environ(tmp_path), capture_output=True, text=True, timeout=LIMIT_SEC, check=False
    )
    assert done.returncode == 1
    assert "run the demo in the directory of the repository" in done.stderr
    assert not os.listdir(tmp_path)


def _read_until(process: subprocess.Popen[str], text: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError("".join(lines))
