"""How the demo shows a run: a table that lives in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import frozen
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_SIGNS = {"SUCCEEDED": "✔", "FAILED": "✘", "CANCELLED": "■", "PENDING": "·"}
_STYLES = {"SUCCEEDED": "green", "FAILED": "red", "CANCELLED": "yellow", "RUNNING": "cyan", "PENDING": "dim"}


@frozen
class TaskView:
    """A task as it is now."""

    name: str
    status: str
    took_sec: float | None
    said: str
    """The last line that it printed."""


def tasks_of(run: Mapping[str, Any]) -> list[TaskView]:
    """The tasks of a run in their order."""
    records = run.get("task_records") or {}
    return [_task(name, status, records.get(name) or {}) for name, status in (run.get("tasks") or {}).items()]


def _task(name: str, status: str, record: Mapping[str, Any]) -> TaskView:
    took_ms = record.get("duration_ms")
    lines = str(record.get("stdout") or record.get("error") or "").strip().splitlines()
    return TaskView(name, status, None if took_ms is None else took_ms / 1000, lines[-1] if lines else "")


class LiveView:
    """For a terminal: every task has a line, which turns green."""

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._live: Live | None = None
        self._spinner = Spinner("dots", style="cyan")

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Draw while the block runs; what was drawn last stays."""
        with Live(console=self._terminal, refresh_per_second=12) as self._live:
            yield

    def show(self, run: Mapping[str, Any]) -> None:
        """The run is like this now."""
        assert self._live is not None
        self._live.update(self._table(tasks_of(run)), refresh=True)

    def _table(self, tasks: list[TaskView]) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for overflow in ("fold", "fold", "fold", "ellipsis"):
            table.add_column(overflow=overflow, no_wrap=True)
        for task in tasks:
            style = _STYLES.get(task.status, "")
            sign = self._spinner if task.status == "RUNNING" else Text(_SIGNS.get(task.status, "?"), style)
            took = "" if task.took_sec is None else f"{task.took_sec:.1f} s"
            table.add_row(sign, Text(task.name, style), Text(took, "dim"), Text(task.said))
        return table


class PlainView:
    """For a pipe or a file: a line whenever a task has started or ended."""

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._shown: dict[str, str] = {}

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Nothing to begin, nothing to end."""
        yield

    def show(self, run: Mapping[str, Any]) -> None:
        """The run is like this now."""
        for task in tasks_of(run):
            if task.status != "PENDING" and self._shown.get(task.name) != task.status:
                self._shown[task.name] = task.status
                line = f"  {task.name} {task.status}" + (f": {task.said}" if task.said else "")
                self._terminal.print(line, highlight=False, markup=False, soft_wrap=True)


def view_for(terminal: Console) -> LiveView | PlainView:
    """The one that fits."""
    return LiveView(terminal) if terminal.is_terminal else PlainView(terminal)
