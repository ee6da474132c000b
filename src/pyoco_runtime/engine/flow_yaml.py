"""flow.yaml as a checked value: what it may hold, and a graph that compiles. No user code is imported here."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen
from pyoco.core.models import Task
from pyoco.dsl.graph import (
    GraphSyntaxError,
    build_flow_from_graph,
    parse_graph,
    resolve_pipe_refs,
    validate_graph_terms,
)
from pyoco.dsl.graph_terms import TaskTerm

from pyoco_runtime.engine.yaml_file import YamlFile, read_yaml
from pyoco_runtime.errors import InvalidFlowFile
from pyoco_runtime.wording import nearest, not_one_of, quoted

__all__ = ["FlowFile", "InvalidFlowFile", "TaskEntry", "check_flow_yaml"]

_TOP = ("version", "flow", "tasks", "pipes", "runtime")
_FLOW = ("graph", "defaults")
_TASK = ("callable", "use", "inputs", "outputs")
_RUNTIME = ("expose_env",)
_REFUSED = {
    "flows": "a file holds one workflow: use `flow:` with `graph:`",
    "discovery": "what is imported is the operator's choice: set PYOCO_DISCOVERY_MODULES on the worker, or use"
    " tasks.<name>.use or tasks.<name>.callable",
}
_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_POSITION = re.compile(r" at position (\d+)")


@frozen
class TaskEntry:
    """What the file says about one task."""

    callable: str | None = None
    use: str | None = None
    inputs: Mapping[str, Any] = {}
    outputs: tuple[str, ...] = ()


@frozen
class FlowFile:
    """A flow.yaml that is right as far as this can be known without the user's code."""

    graph: str
    defaults: Mapping[str, Any]
    """The params of a run that gives none; plain JSON."""
    tasks: Mapping[str, TaskEntry]
    pipes: Mapping[str, str]
    expose_env: tuple[str, ...] = ()
    version: int = 1
    registered: tuple[str, ...] = ()
    """The tasks that a worker must have registered, because the file itself does not say where they are."""


def check_flow_yaml(text: str | bytes) -> FlowFile:
    """Read and check a flow.yaml. Raises InvalidFlowFile."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidFlowFile(f"the file is not UTF-8: byte {error.start + 1}; save it as UTF-8") from error
    return _checked(text)


@functools.lru_cache(maxsize=32)  # runs of one file come in series; nobody changes the value
def _checked(text: str) -> FlowFile:
    return _Check(read_yaml(text)).file()


class _Check:
    """Walks through one file."""

    def __init__(self, source: YamlFile) -> None:
        self._source = source

    def file(self) -> FlowFile:
        root = self._source.value
        if not isinstance(root, dict):
            raise InvalidFlowFile(f"the file must be a mapping with the keys {', '.join(_TOP)}, not {_kind(root)}")
        for key, why in _REFUSED.items():
            if key in root:
                raise self._wrong(f"the key {quoted(key)} is not allowed: {why}", key)
        self._only(_TOP, root)
        flow = self._mapping("flow")
        self._only(_FLOW, flow, "flow")
        tasks = {self._task_name(name): self._task(name) for name in self._mapping("tasks")}
        runtime = self._mapping("runtime")
        self._only(_RUNTIME, runtime, "runtime")
        file = FlowFile(
            graph=self._graph(root, flow),
            defaults=self._defaults(),
            tasks=tasks,
            pipes=self._pipes(),
            expose_env=self._texts("runtime", "expose_env"),
            version=self._version(root.get("version", 1)),
        )
        return evolve(file, registered=_registered(self._compile(file), file.tasks))

    def _graph(self, root: dict[Any, Any], flow: dict[Any, Any]) -> str:
        graph = flow.get("graph")
        if root.get("flow") is None or graph is None:
            raise self._wrong("is missing: say in which order the tasks run, as `graph: a >> b`", "flow", "graph")
        if not isinstance(graph, str):
            raise self._wrong(f"must be text as `a >> b`, not {_kind(graph)}", "flow", "graph")
        if not graph.strip():
            raise self._wrong("is empty: say in which order the tasks run, as `graph: a >> b`", "flow", "graph")
        return graph

    def _defaults(self) -> dict[str, Any]:
        defaults = self._mapping("flow", "defaults")
        for name, value in defaults.items():
            path = ("flow", "defaults", str(name))
            if not isinstance(name, str):
                raise self._wrong(f"a param's name must be text, not {_kind(name)}", *path)
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise self._wrong("is not JSON (a date, for example): put it in quotes", *path) from None
        return defaults

    def _task_name(self, name: Any) -> str:
        if not isinstance(name, str) or not name.strip():
            raise self._wrong(f"a task's name must be text, not {_kind(name)}", "tasks", str(name))
        return name

    def _task(self, name: str) -> TaskEntry:
        entry = self._mapping("tasks", name, required=True)
        self._only(_TASK, entry, "tasks", name)
        path, use = entry.get("callable"), entry.get("use")
        if path is not None and not (isinstance(path, str) and _CALLABLE.fullmatch(path)):
            raise self._wrong(f'must be text as "module:function", not {_shown(path)}', "tasks", name, "callable")
        if use is not None and not (isinstance(use, str) and use.strip()):
            raise self._wrong(f"must be the name of a registered task, not {_shown(use)}", "tasks", name, "use")
        if path and use:
            raise self._wrong("has both `callable` and `use`: keep one of them", "tasks", name)
        inputs = self._mapping("tasks", name, "inputs")
        return TaskEntry(path, use, inputs, self._texts("tasks", name, "outputs"))

    def _pipes(self) -> dict[str, str]:
        pipes = self._mapping("pipes")
        for name, graph in pipes.items():
            if not (isinstance(name, str) and isinstance(graph, str)):
                raise self._wrong(f"must be text as `a >> b`, not {_kind(graph)}", "pipes", str(name))
        return pipes

    def _version(self, version: Any) -> int:
        if isinstance(version, bool) or not re.fullmatch(r"\d{1,9}", str(version)):
            raise self._wrong(f"must be a whole number, as 1, not {_shown(version)}", "version")
        return int(version)

    def _compile(self, file: FlowFile) -> Iterable[str]:
        """Compile the graph as a worker will, over tasks that do nothing; returns the tasks that it asked for."""
        asked = _Placeholders()
        try:
            parsed = resolve_pipe_refs(parse_graph(file.graph), dict(file.pipes))
            problems = validate_graph_terms(parsed).errors
            build_flow_from_graph(graph=file.graph, tasks=asked, pipes=dict(file.pipes))
        except RecursionError as error:
            raise self._wrong("is nested too deeply", "flow", "graph") from error
        except ValueError as error:  # pyoco's own: syntax, references, expressions
            raise self._wrong(_explained(error, file.graph), "flow", "graph") from error
        if problems:
            raise self._wrong("; ".join(problems), "flow", "graph")
        names = [term.node_name or term.name for term in parsed.terms if isinstance(term, TaskTerm)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None and len(names) == len(parsed.terms):  # with loops or a switch pyoco goes step by step
            raise self._wrong(
                f"the task {quoted(twice)} is there twice: give the second one a name, as `again: {twice}`",
                "flow",
                "graph",
            )
        return asked

    def _mapping(self, *path: str, required: bool = False) -> dict[Any, Any]:
        value = self._at(path)
        if value is None and not required:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(f"must be a mapping, not {_kind(value)}", *path)
        return value

    def _texts(self, *path: str) -> tuple[str, ...]:
        value = self._at(path)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong("must be a list of texts", *path)
        return tuple(value)

    def _at(self, path: tuple[str, ...]) -> Any:
        value = self._source.value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def _only(self, allowed: Iterable[str], found: dict[Any, Any], *path: str) -> None:
        for key in found:
            if key not in allowed:
                what = not_one_of(key, f"a key of {'.'.join(path) or 'flow.yaml'}", allowed)
                raise self._wrong(what, *path, str(key))

    def _wrong(self, what: str, *path: str) -> InvalidFlowFile:
        line = self._source.line(*path) or self._source.line(*path[:-1])
        where = f" (line {line})" if line else ""
        return InvalidFlowFile(f"{'.'.join(path)}{where}: {what}")


class _Placeholders(dict[str, Task]):
    """Has every task; each does nothing."""

    def get(self, name: str, default: Any = None) -> Any:
        """The one of that name."""
        return self.setdefault(name, Task(func=lambda: None, name=name))


def _registered(asked: Iterable[str], tasks: Mapping[str, TaskEntry]) -> tuple[str, ...]:
    """Which names lead out of the file, as flow_build follows them."""
    found = set()
    for name in asked:
        users: set[str] = set()
        entry = tasks.get(name, TaskEntry())
        while entry.use and entry.use not in users and entry.use != name:
            users.add(name)
            name, entry = entry.use, tasks.get(entry.use, TaskEntry())
        if not entry.callable:
            found.add(entry.use or name)
    return tuple(sorted(found))


def _explained(error: ValueError, graph: str) -> str:
    """pyoco's words, with a line of the graph instead of a position in it."""
    text = str(error)
    found = _POSITION.search(text)
    if found and isinstance(error, GraphSyntaxError):
        before = graph[: int(found[1])]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        text = f"line {line}, column {column} of the graph: {text.replace(found[0], '')}"
    if re.search(r"Unexpected character '[&|()\[\]%]'", text) or "got 'LPAREN'" in text:
        text += " A graph knows `>>`, `name: task`, pipe(), switch(), repeat(), foreach() and until()."
    elif unknown := re.search(r"Unknown callable term '(\w+)'", text):
        near = nearest(unknown[1], ("pipe", "switch", "repeat", "foreach", "until"))
        text += f" Did you mean {near}?" if near else " There are pipe, switch, repeat, foreach and until."
    return text


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def _shown(value: Any) -> str:
    return quoted(value) if isinstance(value, str | int | float) else _kind(value)
