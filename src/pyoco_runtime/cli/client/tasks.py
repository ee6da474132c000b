"""pyoco-client tasks: the tasks of a run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from pyoco_runtime.cli.client.moments import clock
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.run_table import status_style
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, Item, field


def _took(item: Item) -> str:
    took = item.get("duration_ms")
    return "-" if took is None else f"{took / 1000:.3f} s"


COLUMNS = (
    field("task", weight=5),
    field("status", style=status_style, weight=6),
    Column(
        name="started_at",
        raw=lambda item: str(item.get("started_at") or "-"),
        shown=lambda item: clock(item.get("started_at")),
        weight=2,
    ),
    Column(name="duration_ms", raw=lambda item: str(item.get("duration_ms") or "-"), shown=_took, weight=3),
    field("error", style=lambda item: "red", weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tasks`."""
    parser.add_argument("run_id")
    add_output(parser, "json", "table")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them."""
    found = session.client.get_tasks(args.run_id)
    if args.output == "json":
        session.screen.json(found)
    else:
        session.screen.table(COLUMNS, rows(found))
    return 0


def rows(found: Mapping[str, Any]) -> list[Item]:
    """A row for every task, in their order."""
    records = found.get("task_records") or {}
    return [
        {**(records.get(name) or {}), "task": name, "status": status}
        for name, status in (found.get("tasks") or {}).items()
    ]
