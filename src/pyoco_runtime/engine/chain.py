"""Flows whose tasks can only run one after the other."""

from __future__ import annotations

from pyoco.core.models import Flow, Task


def in_order(flow: Flow) -> list[Task]:
    """The tasks, each after those it depends on as far as that is possible; the same order every time."""
    placed: dict[str, Task] = {}
    visited: set[str] = set()
    members = {task.name: task for task in flow.tasks}
    stack = [(task, False) for task in sorted(members.values(), key=_name, reverse=True)]
    while stack:
        task, is_due = stack.pop()
        if is_due:
            placed[task.name] = task
        elif task.name not in visited:
            visited.add(task.name)
            stack.append((task, True))
            before = sorted(task.dependencies, key=_name, reverse=True)
            stack.extend((each, False) for each in before if each.name in members)
    return list(placed.values())


def as_chain(flow: Flow, order: list[Task]) -> list[Task] | None:
    """The order, if pyoco would execute these tasks one by one and do nothing else meanwhile; else None.

    Then no pool of threads is needed, which costs more than the rest of a small run.
    """
    if flow.has_control_flow():
        return None
    done: set[str] = set()
    last: Task | None = None
    for task in order:
        if task.timeout_sec or task.fail_policy == "isolate" or task.trigger_policy != "ALL":
            return None
        if last is not None and last not in task.dependencies:
            return None  # could run beside the one before
        if any(each.name not in done for each in task.dependencies):
            return None  # cannot run at all; pyoco says so
        done.add(task.name)
        last = task
    return order


def _name(task: Task) -> str:
    return str(task.name)
