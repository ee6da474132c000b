"""The shape of a flow as JSON: nodes and edges without cycles, loops and switches named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyoco.core.models import Flow, Task
from pyoco.dsl.graph import build_flow_from_graph
from pyoco.dsl.syntax import TaskWrapper

from pyoco_runtime.engine.chain import in_order
from pyoco_runtime.engine.graph import LABEL_LIMIT, MOST_NODES, graph_of


def tasks(names: str = "abcdef") -> dict[str, Task]:
    return {name: Task(func=print, name=name) for name in names}


def drawn(flow: Flow) -> dict[str, Any]:
    """The graph as it travels."""
    return dict(json.loads(json.dumps(graph_of(flow, in_order(flow)))))


def of(text: str) -> dict[str, Any]:
    return drawn(build_flow_from_graph(graph=text, tasks=tasks()))


def edges(graph: dict[str, Any]) -> list[str]:
    return [" ".join(edge) for edge in graph["edges"]]


def node(graph: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in graph["nodes"] if each["id"] == name]
    return {key: value for key, value in found.items() if key != "id"}


def test_one_task() -> None:
    """Most flows of a test are such."""
    assert of("a") == {"nodes": [{"id": "a", "kind": "task"}], "edges": []}


def test_a_row_of_tasks() -> None:
    """One after the other, as they are executed."""
    graph = of("b >> a >> c")
    assert [each["id"] for each in graph["nodes"]] == ["b", "a", "c"]
    assert edges(graph) == ["b a", "a c"]


def test_tasks_side_by_side() -> None:
    """What a flow made in Python can do: branches that meet again, for all or for any of them."""
    a, b, c, d = (TaskWrapper(task) for task in tasks("abcd").values())
    flow = Flow("f") >> a >> [b, c] >> d
    assert edges(drawn(flow)) == ["a b", "a c", "b d", "c d"]
    d.task.trigger_policy = "ANY"
    assert node(drawn(flow), "d") == {"kind": "task", "join": "any"}


def test_a_switch_leads_to_its_cases_and_they_to_what_follows() -> None:
    """Without a default it may also lead on directly."""
    graph = of("a >> switch(on={{mode}}){ x: b >> c; default: d } >> e")
    assert edges(graph) == ["a switch:1", "switch:1 b x", "b c", "switch:1 d *", "c e", "d e"]
    assert node(graph, "switch:1") == {"kind": "switch", "label": "params.mode"}
    assert node(graph, "c") == {"kind": "task", "parent": "switch:1", "case": "x"}
    assert edges(of("switch(on={{mode}}){ x: b } >> e")) == ["switch:1 b x", "b e", "switch:1 e"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("repeat(count=3){ a }", {"loop": "repeat", "label": "3"}),
        ("repeat(count={{times}}){ a }", {"loop": "repeat", "label": "params.times"}),
        ("foreach(over={{items}}, item=each){ a }", {"loop": "foreach", "label": "params.items as each"}),
        ("foreach(over={{results.b}}){ a }", {"loop": "foreach", "label": "results.b"}),
        ("until(cond={{results.a}}, max_iter=9){ a }", {"loop": "until", "label": "results.a", "max": 9}),
        ("until(cond={{results.a}}){ a }", {"loop": "until", "label": "results.a"}),
    ],
)
def test_a_loop_says_what_it_does(text: str, words: dict[str, Any]) -> None:
    """Its way back is no edge: what is inside names it."""
    graph = of(f"b >> {text} >> c")
    assert edges(graph) == ["b loop:1", "loop:1 a", "a c"]
    assert node(graph, "loop:1") == {"kind": "loop", **words}
    assert node(graph, "a") == {"kind": "task", "parent": "loop:1"}


def test_loops_and_switches_within_each_other() -> None:
    """The parent is the innermost."""
    graph = of("repeat(count=2){ a >> switch(on={{mode}}){ x: foreach(over={{items}}){ b }; default: c } } >> d")
    parents = {each["id"]: each.get("parent") for each in graph["nodes"]}
    assert parents == {"loop:1": None, "a": "loop:1", "switch:1": "loop:1", "loop:2": "switch:1"} | {
        "b": "loop:2",
        "c": "switch:1",
        "d": None,
    }
    assert edges(graph) == ["loop:1 a", "a switch:1", "switch:1 loop:2 x", "loop:2 b", "switch:1 c *", "b d", "c d"]


def test_a_task_that_stands_there_twice_is_two_nodes() -> None:
    """Or there would be a cycle; both name the task."""
    graph = of("a >> repeat(count=2){ b } >> a")
    assert edges(graph) == ["a loop:1", "loop:1 b", "b a#2"]
    assert node(graph, "a#2") == {"kind": "task", "task": "a"}


def test_no_two_nodes_have_one_name() -> None:
    """Whatever tasks are called in Python, where they may have any name."""
    odd = {name: TaskWrapper(Task(func=print, name=name)) for name in ("a", "a#2", "loop:1")}
    flow = Flow("f") >> (odd["a"] >> odd["a#2"] >> odd["a"] >> odd["loop:1"][2])
    graph = drawn(flow)
    assert [each["id"] for each in graph["nodes"]] == ["a", "a#2", "a#3", "loop:2", "loop:1"]


def test_what_is_tied_together_too_tightly_is_not_drawn() -> None:
    """A million edges are no drawing."""
    many = [Task(func=print, name=f"t{n}") for n in range(120)]
    for task in many:
        task.dependencies.update(many)
    assert graph_of(Flow("f", set(many)), many) is None


def test_labels_have_a_limit() -> None:
    """They come from others."""
    graph = of(f"switch(on={{{{{'x' * 500}}}}}){{ {'y' * 500}: a; default: b }}")
    assert len(node(graph, "switch:1")["label"]) == LABEL_LIMIT
    assert len(node(graph, "a")["case"]) == LABEL_LIMIT


@pytest.mark.parametrize("is_looped", [False, True])
def test_what_nobody_could_read_is_not_drawn(is_looped: bool) -> None:
    """The snapshot has better use for the room."""
    many = [TaskWrapper(Task(func=print, name=f"t{n}")) for n in range(MOST_NODES)]
    fragment = many[0]
    for each in many[1:]:
        fragment = fragment >> each
    flow = Flow("f") >> (fragment[2] if is_looped else fragment)
    order = in_order(flow)
    assert (graph_of(flow, order) is None) is is_looped
    assert graph_of(flow, [*order, Task(func=print, name="one-more")]) is None
