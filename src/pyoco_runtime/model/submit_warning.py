"""What the answer to an accepted run adds when it may wait for ever, or fail."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyoco_runtime.model.offer import Offered
from pyoco_runtime.wording import nearest, quoted

SHOWN = 10  # names in a warning
_GUESSED = 100  # to find the nearest of many names takes longer than to accept a run


def no_worker(tag: str, tags: Collection[str]) -> str:
    """Nobody has this tag; `tags` are those that somebody has."""
    there_are = f"live workers have {_listed(tags)}" if tags else "there is no live worker"
    return f"no live worker has the tag {quoted(tag)}: the run waits until one comes ({there_are})"


def flow_warning(flow_name: str, tag: str, offered: Offered) -> str | None:
    """What to say if no worker of the tag announces the flow; None if one may have it."""
    if offered.flows is None or flow_name in offered.flows:
        return None
    there_are = f"they run {_listed(offered.flows)}" if offered.flows else "they run flow.yaml files only"
    return f"no live worker with the tag {quoted(tag)} runs the flow {_guessed(flow_name, offered.flows)} ({there_are})"


def task_warnings(tasks: Iterable[str], tag: str, offered: Offered) -> tuple[str, ...]:
    """What to say of each task that a flow.yaml needs and no worker of the tag announces."""
    known = offered.tasks
    if known is None:
        return ()
    there_are = f"they have {_listed(known)}" if known else "they have none"
    return tuple(
        f"no live worker with the tag {quoted(tag)} has the task {_guessed(task, known)} ({there_are})"
        for task in tasks
        if task not in known
    )


def _guessed(name: str, known: Collection[str]) -> str:
    near = nearest(name, known) if len(known) <= _GUESSED else None
    return f"{quoted(name)}; did you mean {quoted(near)}?" if near else quoted(name)


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
