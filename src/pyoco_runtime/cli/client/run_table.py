"""How a list of runs looks."""

from __future__ import annotations

from pyoco_runtime.cli.client.moments import ago
from pyoco_runtime.cli.client.table import Column, Item, field

STATUS_STYLES = {
    "PENDING": "yellow",
    "RUNNING": "cyan",
    "COMPLETED": "green",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "CANCELLING": "magenta",
    "CANCELLED": "dim",
}


def status_style(item: Item) -> str:
    """The colour of a run's or a task's status."""
    return STATUS_STYLES.get(str(item.get("status") or item.get("state")), "")


COLUMNS = (
    field("run_id", is_id=True),
    field("status", style=status_style, weight=5),
    field("flow_name", weight=4),
    field("tag", weight=2),
    Column(
        name="updated_at",
        raw=lambda item: str(item.get("updated_at", "-")),
        shown=lambda item: f"{ago(item.get('updated_at'))} ago",
        style=lambda item: "dim",
        weight=1,
    ),
)
"""As published: scripts cut them out by their place."""
