"""What the person at the keyboard is told when a command fails."""

from __future__ import annotations

import argparse
import io
import os

import pytest

from pyoco_runtime.cli.client import main as program
from pyoco_runtime.cli.client.advice import advice, shown
from pyoco_runtime.client import NotAGateway, NotConnected, WaitTimeout
from pyoco_runtime.errors import PyocoError, UserError
from tests.unit.cli_client.support import refused

ARGS = argparse.Namespace(command="get", server="http://gateway:8000")


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")


@pytest.mark.parametrize(
    ("error", "err_id", "step"),
    [
        (NotConnected("http://gateway:8000: refused"), "0001", "pyoco-server up"),
        (NotAGateway("not with JSON"), "0001", "the address of a gateway?"),
        (refused(404, "run not found", 5), "0005", "pyoco-client list"),
        (refused(404, "Not Found", path="/runs/x"), "0005", "pyoco-client list"),
        (refused(404, "Not Found", path="/wheels/x"), "0023", "pyoco-client wheels"),
        (refused(401, "api key required", 14), "0014", "--api-key"),
        (refused(403, "admin key required", 39), "0039", "--admin"),
        (refused(503, "nats unavailable"), "0003", "doctor"),
        (refused(409, "version", 22), "0022", "wheels"),
        (refused(422, "tag: wrong"), "0002", "pyoco-client get --help"),
        (WaitTimeout("run x has not ended"), "0021", "watch"),
    ],
)
def test_an_error_has_its_id_and_the_next_step(error: PyocoError, err_id: str, step: str) -> None:
    """Also where the published gateway names no id."""
    first, second = advice(error, ARGS)
    assert first.startswith(f"[pyoco-client][ERR-PYOCO-{err_id}] ")
    assert step in second


def test_a_gateway_that_is_away_is_named() -> None:
    """The address that was tried."""
    assert "http://gateway:8000" in advice(NotConnected("refused"), ARGS)[1]


def test_japanese_gets_the_meaning_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's own words follow."""
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    first, second = advice(refused(404, "run not found", 5), ARGS)
    assert first == "[pyoco-client][ERR-PYOCO-0005] run が見つかりません (run not found)"
    assert "調べる" in second


def test_what_the_user_can_fix_is_said_as_it_is() -> None:
    """The message has its own example."""
    assert advice(UserError("do this"), ARGS) == ["[pyoco-client][ERR-PYOCO-0018] do this"]


def test_a_password_in_the_address_is_not_shown() -> None:
    """It would be in a bug report."""
    assert shown("http://me:secret@host:1") == "http://***@host:1"


def test_ctrl_c_is_130_without_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback."""

    def interrupted(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_run", interrupted)
    assert program.main(["list"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_closed_pipe_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`| head` has had enough."""

    def closed(args: argparse.Namespace) -> int:
        raise BrokenPipeError

    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(program, "_run", closed)
    with io.TextIOWrapper(io.FileIO(write, "w")) as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        stdout.write("left over")
        assert program.main(["list"]) == 0
