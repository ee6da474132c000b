"""What can be run in a process, and how a resolver says it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from pyoco.core.models import Flow

from pyoco_runtime.engine import registered
from pyoco_runtime.engine.inventory import flows_of, take_inventory
from pyoco_runtime.engine.resolver import no_flows
from pyoco_runtime.engine.thread_runner import ThreadRunner
from pyoco_runtime.model.offer import Offer


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user's own with a resolver, and without flows."""
    made = ModuleType("users_flows")
    monkeypatch.setitem(sys.modules, "users_flows", made)
    exec("def resolve(name): raise KeyError(name)", vars(made))  # as a file of the user's
    return made


def test_flows_at_the_top_of_the_module_are_found(module: ModuleType) -> None:
    """By themselves under their own name, in a mapping under its keys."""
    module.one = Flow(name="first")  # type: ignore[attr-defined]
    module.FLOWS = {"second": Flow(name="x"), "no flow": 1}  # type: ignore[attr-defined]
    assert flows_of(module.resolve) == ("first", "second")


def test_a_resolver_without_flows_beside_it_cannot_tell(module: ModuleType) -> None:
    """It makes them elsewhere: then any may be there. Only a worker without a resolver surely has none."""
    assert flows_of(module.resolve) is None
    assert flows_of(lambda name: Flow(name=name)) is None
    assert flows_of(no_flows) == ()


@pytest.mark.parametrize(
    ("said", "flows"),
    [
        (["b", "a"], ("a", "b")),
        ({"a": object()}, ("a",)),
        (lambda: {"a", "b"}, ("a", "b")),
        ((), ()),
        (None, None),
        ("hello", None),
        ([1], None),
        (lambda: 1 / 0, None),
    ],
)
def test_the_attribute_of_a_resolver_counts_alone(
    module: ModuleType, said: Any, flows: tuple[str, ...] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no list of names is told to the operator, and then nothing is known."""
    module.one = Flow(name="first")  # type: ignore[attr-defined]
    module.resolve.flows = said
    assert flows_of(module.resolve) == flows
    assert bool(caplog.records) == (flows is None and said is not None)


def test_tasks_are_those_of_modules_and_plug_ins(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown as soon as one cannot be loaded: it may be mended, and then there are more."""
    monkeypatch.setattr(registered, "_known", {})
    exec("from pyoco import task\n@task\ndef hello(): pass", vars(module))
    monkeypatch.setenv("PYOCO_DISCOVERY_MODULES", "users_flows")
    assert take_inventory(no_flows) == Offer((), ("hello",))
    monkeypatch.setenv("PYOCO_DISCOVERY_MODULES", "users_flows no_such_module")
    assert take_inventory(no_flows) == Offer((), None)


def test_a_runner_in_threads_imports_nothing_to_know_it(module: ModuleType) -> None:
    """It is in somebody's program: its tasks stay unknown. Who embeds it may name the flows."""
    assert ThreadRunner(module.resolve, 1).offer == Offer(None, None)
    assert ThreadRunner(module.resolve, 1, flows=("b", "a")).offer == Offer(("a", "b"), None)
