"""A checked flow.yaml -> a pyoco Flow over the user's own functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from pyoco.core.models import Flow, Task
from pyoco.dsl.graph import build_flow_from_graph
from pyoco.dsl.syntax import TaskWrapper

from pyoco_runtime.engine.flow_yaml import FlowFile, TaskEntry
from pyoco_runtime.engine.registered import Registered, clone, registered_tasks
from pyoco_runtime.engine.resolver import last_words
from pyoco_runtime.errors import InvalidFlowFile
from pyoco_runtime.wording import nearest, quoted


def build_flow(file: FlowFile, name: str, callable_allow: tuple[str, ...] = ()) -> Flow:
    """A new Flow with tasks of its own, importing what the file names. Raises InvalidFlowFile."""
    tasks = _Tasks(file, callable_allow)
    try:
        return build_flow_from_graph(graph=file.graph, tasks=tasks, pipes=dict(file.pipes), flow_name=name or "main")
    except ValueError as error:  # pyoco's own: the graph was checked alone, but task names may clash now
        raise InvalidFlowFile(f"flow.graph: {error}") from error


class _Tasks(dict[str, Task]):
    """The tasks of one flow, made when the graph asks for them, so that only those are imported."""

    def __init__(self, file: FlowFile, callable_allow: tuple[str, ...]) -> None:
        super().__init__()
        self._file = file
        self._allow = callable_allow

    def get(self, name: str, default: Any = None) -> Any:
        """The task of that name. Raises InvalidFlowFile."""
        if name not in self:
            self[name] = self._make(name, ())
        return self[name]

    def _make(self, name: str, users: tuple[str, ...]) -> Task:
        entry = self._file.tasks.get(name, TaskEntry())
        if entry.callable:
            function = load_callable(entry.callable, self._allow, f"tasks.{name}.callable")
            return _with(Task(func=function, name=name), entry)
        if entry.use:
            return _with(clone(self._source(name, entry.use, users), name), entry)
        task = _registered(name, f"flow.graph names the task {quoted(name)}", self._file)
        return _with(clone(task, task.name), entry)

    def _source(self, name: str, use: str, users: tuple[str, ...]) -> Task:
        if use in users or use == name:
            return _registered(use, f"tasks.{name}.use names {quoted(use)}", self._file)
        other = self._file.tasks.get(use)
        if other is not None and (other.callable or other.use):
            return self._make(use, (*users, name))
        return _registered(use, f"tasks.{name}.use names {quoted(use)}", self._file)


def load_callable(path: str, allow: tuple[str, ...], key: str) -> Callable[..., Any]:
    """Import `module:function`, if the modules of `allow` permit it. Raises InvalidFlowFile that names the key."""
    module, _, attribute = path.partition(":")
    _refuse_stranger(module, path, allow, key)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise InvalidFlowFile(f"{key}: there is no module {quoted(module)} on this worker") from error
        raise InvalidFlowFile(f"{key}: {module} cannot be imported: {last_words(error)}") from error
    except AttributeError as error:
        raise InvalidFlowFile(f"{key}: {last_words(error)}") from error
    except (Exception, SystemExit) as error:  # the user's code runs here
        raise InvalidFlowFile(f"{key}: {module} cannot be imported: {last_words(error)}") from error
    function = found.task.func if isinstance(found, TaskWrapper) else found.func if isinstance(found, Task) else found
    if not callable(function):
        raise InvalidFlowFile(f"{key}: {path} is {type(function).__name__}, not a function")
    # An allowed module must not lend out what it has imported from elsewhere, as subprocess.run.
    _refuse_stranger(getattr(function, "__module__", None) or module, path, allow, key)
    return function  # type: ignore[no-any-return] # pyoco has no types


def _refuse_stranger(module: str, path: str, allow: Iterable[str], key: str) -> None:
    allowed = tuple(allow)
    if allowed and not any(module == each or module.startswith(f"{each}.") for each in allowed):
        raise InvalidFlowFile(
            f"{key}: {path} comes from the module {module}, and this worker allows only {', '.join(allowed)}:"
            " add the module to PYOCO_CALLABLE_ALLOW on the worker, or use another task"
        )


def _registered(name: str, who: str, file: FlowFile) -> Task:
    registered = registered_tasks()
    task = registered.tasks.get(name)
    if task is None:
        raise InvalidFlowFile(f"{who}, which is neither in `tasks` nor registered{_hints(name, registered, file)}")
    return task


def _hints(name: str, registered: Registered, file: FlowFile) -> str:
    near = nearest(name, [*file.tasks, *registered.tasks])
    hint = f"; did you mean {quoted(near)}?" if near and near != name else ""
    if registered.problems:
        return f"{hint}; perhaps it would be there, but {'; '.join(registered.problems)}"
    return hint or ": give it a `callable`, or have its plug-in installed on this worker"


def _with(task: Task, entry: TaskEntry) -> Task:
    task.inputs.update(deepcopy(dict(entry.inputs)))
    task.outputs.extend(entry.outputs)
    return task
