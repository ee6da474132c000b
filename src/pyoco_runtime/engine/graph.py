"""The shape of a flow as plain JSON, for whoever draws it: tasks, switches and loops, and what comes after what.

Flat and without cycles: a switch or a loop is a node before its body, what is inside names it as its `parent`, and
what follows comes after the ends of the body. The way back of a loop is not an edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from pyoco.core.models import Flow, Task
from pyoco.dsl.nodes import (
    DEFAULT_CASE_VALUE,
    DSLNode,
    ForEachNode,
    RepeatNode,
    SubFlowNode,
    SwitchNode,
    TaskNode,
    UntilNode,
)

from pyoco_runtime.model.progress import Graph

MOST_NODES = 2000  # nobody reads a drawing of more, and it would fill the snapshot
MOST_EDGES = 6000
LABEL_LIMIT = 120  # characters
DEFAULT_CASE = "*"


def graph_of(flow: Flow, order: list[Task]) -> Graph | None:
    """The graph of the flow with its tasks in this order; None if it is too large to be of use."""
    if not flow.has_control_flow():
        is_small = len(order) <= MOST_NODES and sum(len(task.dependencies) for task in order) <= MOST_EDGES
        return _of_tasks(order) if is_small else None
    drawing = _Drawing(task.name for task in order)
    drawing.steps(flow.build_program().steps, [], {})
    is_small = len(drawing.nodes) <= MOST_NODES and len(drawing.edges) <= MOST_EDGES
    return {"nodes": drawing.nodes, "edges": drawing.edges} if is_small else None


def _of_tasks(order: list[Task]) -> Graph:
    if len(order) == 1:  # most often
        return {"nodes": [_task_node(order[0])], "edges": []}
    members = {task.name for task in order}
    edges = [
        [before, task.name]
        for task in order
        for before in sorted((each.name for each in task.dependencies), key=str)
        if before in members
    ]
    return {"nodes": [_task_node(task) for task in order], "edges": edges}


def _task_node(task: Task) -> dict[str, Any]:
    node = {"id": task.name, "kind": "task"}
    if task.trigger_policy == "ANY":
        node["join"] = "any"
    return node


class _Drawing:
    """Walks through a program as the engine executes it: one step after the other."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[list[str]] = []
        self._tasks = frozenset(tasks)
        self._drawn: set[str] = set()
        self._numbers: dict[str, count[int]] = {}

    def steps(self, steps: Iterable[DSLNode], before: list[list[str]], place: dict[str, str]) -> list[list[str]]:
        """Draw these after the open ends `before`, each a node and perhaps the case that leads on; returns the new."""
        for step in steps:
            before = self._step(step, before, place)
        return before

    def _step(self, step: DSLNode, before: list[list[str]], place: dict[str, str]) -> list[list[str]]:
        match step:
            case TaskNode():
                return [[self._task(step.task, before, place)]]
            case SubFlowNode():
                return self.steps(step.steps, before, place)
            case SwitchNode():
                return self._switch(step, before, place)
            case RepeatNode() | ForEachNode() | UntilNode():
                return self._loop(step, before, place)
            case _:  # of a pyoco newer than this
                return before

    def _task(self, task: Task, before: list[list[str]], place: dict[str, str]) -> str:
        if task.name not in self._drawn:
            return self._node({"id": task.name, "kind": "task", **place}, before)
        again = self._own(f"{task.name}#", 2)  # a task may stand in a program several times
        return self._node({"id": again, "kind": "task", "task": task.name, **place}, before)

    def _switch(self, switch: SwitchNode, before: list[list[str]], place: dict[str, str]) -> list[list[str]]:
        name = self._node(
            {"id": self._own("switch:"), "kind": "switch", "label": _text(switch.expression), **place}, before
        )
        ends: list[list[str]] = []
        values = [
            DEFAULT_CASE if case.value == DEFAULT_CASE_VALUE else str(case.value)[:LABEL_LIMIT] for case in switch.cases
        ]
        for value, case in zip(values, switch.cases, strict=True):
            ends += self.steps(case.target.steps, [[name, value]], {"parent": name, "case": value})
        return ends if DEFAULT_CASE in values else [*ends, [name]]

    def _loop(
        self, loop: RepeatNode | ForEachNode | UntilNode, before: list[list[str]], place: dict[str, str]
    ) -> list[list[str]]:
        name = self._node({"id": self._own("loop:"), "kind": "loop", **_loop_words(loop), **place}, before)
        return self.steps(loop.body.steps, [[name]], {"parent": name})

    def _node(self, node: dict[str, Any], before: list[list[str]]) -> str:
        self.nodes.append(node)
        name: str = node["id"]
        self._drawn.add(name)
        for source, *case in before:
            self.edges.append([source, name, *case])
        return name

    def _own(self, beginning: str, first: int = 1) -> str:
        """A name that no other node has, and no task: in Python they may have any."""
        numbers = self._numbers.setdefault(beginning, count(first))
        names = (f"{beginning}{number}" for number in numbers)
        return next(name for name in names if name not in self._drawn and name not in self._tasks)


def _loop_words(loop: RepeatNode | ForEachNode | UntilNode) -> dict[str, Any]:
    match loop:
        case RepeatNode():
            return {"loop": "repeat", "label": str(loop.count) if isinstance(loop.count, int) else _text(loop.count)}
        case ForEachNode():
            alias = f" as {loop.alias}" if loop.alias else ""
            return {"loop": "foreach", "label": f"{_text(loop.source)}{alias}"}
        case _:
            most = {"max": loop.max_iter} if isinstance(loop.max_iter, int) else {}
            return {"loop": "until", "label": _text(loop.condition), **most}


def _text(expression: Any) -> str:
    """The expression as people write it."""
    return str(expression.source).replace("$ctx.", "")[:LABEL_LIMIT]
