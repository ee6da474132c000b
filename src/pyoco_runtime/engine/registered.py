"""The tasks that modules and plug-ins offer to every flow.yaml."""

from __future__ import annotations

import importlib
import logging
import os
from copy import deepcopy
from typing import Any

from attrs import frozen
from pyoco.core.models import Task
from pyoco.discovery.plugins import PluginRegistry, iter_entry_points
from pyoco.dsl.syntax import TaskWrapper

from pyoco_runtime.engine.resolver import last_words

_log = logging.getLogger("pyoco_runtime.engine")


@frozen
class Registered:
    """What was found, and what could not be loaded."""

    tasks: dict[str, Task]
    problems: tuple[str, ...]


def registered_tasks() -> Registered:
    """The tasks of PYOCO_DISCOVERY_MODULES and of the entry points `pyoco.tasks`, loaded once in a process."""
    modules = os.environ.get("PYOCO_DISCOVERY_MODULES", "")
    known = _known.get(modules)
    if known is None:
        known = _load(modules.replace(",", " ").split())
        if not known.problems:  # a plug-in that fails may only need what is not there yet
            _known[modules] = known
    return known


_known: dict[str, Registered] = {}


def clone(task: Task, name: str) -> Task:
    """A task like it that belongs to one flow: building a flow writes its order into its tasks."""
    return Task(
        func=task.func,
        name=name,
        inputs=deepcopy(task.inputs),
        outputs=list(task.outputs),
        parallel_group=task.parallel_group,
        fail_policy=task.fail_policy,
        retries=task.retries,
        timeout_sec=task.timeout_sec,
        trigger_policy=task.trigger_policy,
    )


class _Shelf:
    """What pyoco's plug-ins register their tasks with; a later one of the same name wins, as in pyoco."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}

    def _register_task(self, name: str, task: Task) -> None:
        self.tasks[name] = task

    def _register_task_info(self, info: Any) -> None:
        """Descriptions are for people who write flows."""


def _load(modules: list[str]) -> Registered:
    shelf = _Shelf()
    problems = []
    for name in modules:
        try:
            _scan(importlib.import_module(name), shelf)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code runs here
            problems.append(f"the module {name} of PYOCO_DISCOVERY_MODULES cannot be imported: {last_words(error)}")
    for entry in iter_entry_points():
        try:
            entry.load()(PluginRegistry(shelf, entry.name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code runs here
            problems.append(f"the plug-in {entry.name} ({entry.value}) cannot be loaded: {last_words(error)}")
    for problem in problems:
        _log.warning("%s", problem)
    return Registered(shelf.tasks, tuple(problems))


def _scan(module: Any, shelf: _Shelf) -> None:
    for name, value in vars(module).items():
        if isinstance(value, TaskWrapper):
            shelf._register_task(name, value.task)
        elif isinstance(value, Task):
            shelf._register_task(name, value)
