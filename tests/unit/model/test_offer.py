"""What workers announce, alone and together, and what is said when it is not enough."""

from __future__ import annotations

import pytest

from pyoco_runtime.model.offer import BYTES_LIMIT, COUNT_LIMIT, Offer, Offered, announced
from pyoco_runtime.model.submit_warning import flow_warning, no_worker, task_warnings


def test_names_are_sorted_and_there_once() -> None:
    """Whatever order and repetition the user's code has; empty names name nothing."""
    assert announced(["b", "a", "", "b"]) == ("a", "b")
    assert announced([]) == ()


@pytest.mark.parametrize(
    "names",
    [
        [f"flow-{number}" for number in range(COUNT_LIMIT + 1)],
        ["é" * 200 + str(number) for number in range(BYTES_LIMIT // 400 + 1)],
        ["x" * 257],
    ],
)
def test_a_list_that_is_too_long_is_not_announced_at_all(names: list[str]) -> None:
    """Half a list would make warnings about the other half."""
    assert announced(names) is None


def test_one_worker_that_cannot_tell_makes_the_tag_unknown() -> None:
    """As workers of other makes: then no warning may be given."""
    offered = Offered(frozenset(), frozenset()).joined(Offer(("a",), ())).joined(Offer(("b",), ("t",)))
    assert offered == Offered(frozenset({"a", "b"}), frozenset({"t"}))
    assert offered.joined(Offer(None, ())) == Offered(None, frozenset({"t"}))
    assert flow_warning("c", "default", offered.joined(Offer())) is None
    assert task_warnings(["c"], "default", offered.joined(Offer())) == ()


def test_a_flow_that_nobody_announces_is_warned_of_with_those_that_there_are() -> None:
    """The nearest one is offered; of many, ten are shown."""
    few = Offered(frozenset({"hello", "slow"}), frozenset())
    assert flow_warning("hello", "gpu", few) is None
    assert flow_warning("helo", "gpu", few) == (
        'no live worker with the tag "gpu" runs the flow "helo"; did you mean "hello"? (they run hello, slow)'
    )
    many = Offered(frozenset(f"f{number:04}" for number in range(1012)), frozenset())
    said = flow_warning("zebra", "gpu", many)
    assert said is not None
    assert said.endswith(
        "(they run f0000, f0001, f0002, f0003, f0004, f0005, f0006, f0007, f0008, f0009 and 1,002 more)"
    )
    none = Offered(frozenset(), frozenset())
    assert flow_warning("x", "gpu", none) == (
        'no live worker with the tag "gpu" runs the flow "x" (they run flow.yaml files only)'
    )


def test_the_tasks_of_a_file_are_warned_of_one_by_one() -> None:
    """Only those that are missing."""
    offered = Offered(None, frozenset({"demo/load", "demo/save"}))
    assert task_warnings(["demo/load", "demo/lode"], "default", offered) == (
        'no live worker with the tag "default" has the task "demo/lode"; did you mean "demo/load"?'
        " (they have demo/load, demo/save)",
    )


def test_a_tag_without_a_worker_names_the_tags_that_have_one() -> None:
    """So that a misspelt tag is seen."""
    assert no_worker("gpu", {"default", "cpu"}).endswith("(live workers have cpu, default)")
    assert no_worker("gpu", ()) == (
        'no live worker has the tag "gpu": the run waits until one comes (there is no live worker)'
    )
