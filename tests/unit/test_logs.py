"""Logs as in the contract's part 6."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pyoco_runtime import logs
from pyoco_runtime.core import Escalated, Exited, Restarting, current_path
from pyoco_runtime.core.crash import describe
from pyoco_runtime.errors import NatsUnavailable


@pytest.fixture
def root() -> Iterator[None]:
    """Put the root logger back as it was."""
    logger = logging.getLogger()
    before = (logger.level, logger.handlers[:])
    yield
    logging.captureWarnings(False)
    logger.setLevel(before[0])
    logger.handlers[:] = before[1]


def write(style: logs.LogStyle) -> io.StringIO:
    stream = io.StringIO()
    logs.set_up(style, "DEBUG", stream)
    return stream


def test_a_json_line_has_the_fields_of_the_contract(root: None) -> None:
    """And the context where it is known."""
    stream = write(logs.LogStyle("pyoco-server:http"))
    logging.getLogger("x").info("hello %s", "ö", extra={"run_id": "r1", "err_id": "ERR-PYOCO-0003"})
    line = json.loads(stream.getvalue())
    assert {"ts", "service", "level", "logger", "message", "pathname", "lineno", "func"} <= line.keys()
    assert (line["service"], line["level"], line["message"]) == ("pyoco-server:http", "INFO", "hello ö")
    assert (line["run_id"], line["err_id"]) == ("r1", "ERR-PYOCO-0003")
    assert line["ts"].endswith("Z")


def test_an_exception_is_shown_with_its_origin(root: None) -> None:
    """exc_type, exc_message, exc_traceback, exc_origin; the traceback only if wanted."""
    for wanted in (True, False):
        stream = write(logs.LogStyle("s", traceback=wanted))
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("x").exception("failed")
        line = json.loads(stream.getvalue())
        assert (line["exc_type"], line["exc_message"]) == ("ValueError", "boom")
        assert line["exc_origin"]["func"] == "test_an_exception_is_shown_with_its_origin"
        assert ("exc_traceback" in line) is wanted


def test_the_actors_name_is_on_every_line(root: None) -> None:
    """Whoever logs inside of an actor's task need not say where it is."""
    stream = write(logs.LogStyle("s"))
    token = current_path.set("runtime/link")
    try:
        logging.getLogger("somebody.else").warning("hm")
    finally:
        current_path.reset(token)
    assert json.loads(stream.getvalue())["actor"] == "runtime/link"


def test_events_of_the_tree_are_logged_with_actor_and_next_step(root: None) -> None:
    """A crash names the actor, the error and its id; then comes what follows."""
    stream = write(logs.LogStyle("s", json=False))
    error = NatsUnavailable("gone")
    logs.log_event(Exited("runtime/link", 1.0, 1, False, describe(error, 1.0), error))
    logs.log_event(Restarting("runtime/link", 1.0, 0.5, "runtime/link"))
    logs.log_event(Escalated("runtime", 1.0, "runtime gave up: 11 restarts", "runtime/link"))
    text = stream.getvalue()
    assert "ERROR   link           crashed: NatsUnavailable: gone  err_id=ERR-PYOCO-0003" in text
    assert "WARNING link           restarting in 0.5 s" in text
    assert "CRITICAL runtime        runtime gave up: 11 restarts  err_id=ERR-PYOCO-0031" in text


def test_a_value_that_is_not_json_does_not_break_the_line(root: None) -> None:
    """It is written as its text."""
    stream = write(logs.LogStyle("s"))
    logging.getLogger("x").info("odd", extra={"reason": object})
    assert "object" in json.loads(stream.getvalue())["reason"]
