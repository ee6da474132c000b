"""Values of user code as JSON."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import pytest

from pyoco_runtime.engine.frames import Execute, Report, Unpacker, packed
from pyoco_runtime.engine.plain import TEXT_MAX_CHARS, message, plain, plain_mapping, trace
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import (
    Completed,
    Ending,
    FlowEnded,
    FlowNotFound,
    FlowStarted,
    Killed,
    Raised,
    Stopped,
    TaskEnded,
    TaskLogged,
    TaskStarted,
)
from pyoco_runtime.model.run import TaskStatus


class Rude:
    """Raises whenever it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class RudeError(Exception):
    """Raises when it is told."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("text", "text"),
        ([1, (2, {"a": None})], [1, [2, {"a": None}]]),
        ({1: "x"}, {"1": "x"}),
        (math.nan, "nan"),
        ([math.inf], "[inf]"),
        (datetime.date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
        (
            {
                "a": {
                    1,
                }
            },
            "{'a': {1}}",
        ),
        (Rude(), "<Rude>"),
        ([Rude()], "<list>"),
        pytest.param(10**5000, "<int>", id="a very large number"),
        (2**80, 2**80),
        pytest.param("\udc80", "\udc80", id="half a character"),
    ],
)
def test_what_is_not_json_is_its_repr(value: Any, stored: Any) -> None:
    """And what is, stays; every result can be stored."""
    assert plain(value) == (stored, False)
    json.dumps(stored, allow_nan=False)


def test_a_value_is_a_copy() -> None:
    """User code goes on with the original."""
    value = {"a": [1]}
    stored, _ = plain(value)
    value["a"].append(2)
    assert stored == {"a": [1]}


@pytest.mark.parametrize("value", ["x" * 200, ["x" * 200], "\0" * 40, {"k": Rude.__doc__, "l": "y" * 100}])
def test_a_large_value_is_dropped(value: Any) -> None:
    """By the size that it has as JSON."""
    assert plain(value, max_bytes=100) == (None, True)
    assert plain_mapping({"a": 1, 2: value}, max_bytes=100) == ({"a": 1, "2": None}, True)


def test_a_value_that_holds_itself_is_its_repr() -> None:
    """A circle is no JSON."""
    value: list[Any] = []
    value.append(value)
    assert plain(value) == ("[[...]]", False)


def test_errors_are_told_whatever_they_do() -> None:
    """An error without words is its kind, one that raises too, and a long one loses its middle."""
    assert message(ValueError("bad")) == "bad"
    assert message(ValueError()) == "ValueError"
    assert message(RudeError()) == "RudeError"
    assert "RudeError" in trace(RudeError())
    long = message(ValueError("a" * 100_000 + "z"))
    assert len(long) < TEXT_MAX_CHARS + 100
    assert long.startswith("aaa")
    assert long.endswith("aaz")


@pytest.mark.parametrize("ending", [Completed(), Stopped(), Killed(), Raised("e", "t"), Raised("e"), FlowNotFound("n")])
def test_every_event_crosses_the_wire_as_it_was(ending: Ending) -> None:
    """Also when the bytes come one by one."""
    report = Report(
        (
            FlowStarted(("a", "b")),
            TaskStarted("a", 1.5),
            TaskLogged("a", "stdout", "\udc80 ü\n"),
            TaskEnded("a", TaskStatus.FAILED, 1.5, 2.5, 1000.0, "e", "t", {"k": [1]}, {"o": None}, {}, True),
            FlowEnded(ending, 3.0),
        )
    )
    unpacker = Unpacker()
    data = packed(report) * 2
    frames = [frame for index in range(len(data)) for frame in unpacker.feed(data[index : index + 1])]
    assert frames == [report, report]


def test_an_order_crosses_the_wire_as_it_was() -> None:
    """With all that user code may ask about its run."""
    job = Job(
        run_id="r",
        flow_name="f",
        tag="t",
        submitted_at=1.0,
        tags=("t", "u"),
        params={"n": [1, {"m": None}]},
        tenant_id="x",
        api_key_id="k",
        workflow_yaml="flow:",
        workflow_yaml_sha256="00",
        workflow_yaml_bytes=5,
    )
    order = Execute(3, job, Attempt(4, 5))
    assert list(Unpacker().feed(packed(order))) == [order]
