"""pyoco-client workers: who takes runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from pyoco_runtime.cli.client.moments import ago
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, Item, field

STATES = ("RUNNING", "IDLE", "STOPPED_GRACEFUL", "DISCONNECTED")
_STYLES = {"RUNNING": "cyan", "IDLE": "green", "STOPPED_GRACEFUL": "dim", "DISCONNECTED": "red"}
_PREVIEW = 3  # plugins that a line of the table names


def _style(item: Item) -> str:
    return _STYLES.get(str(item.get("state")), "")


def _words(name: str) -> Any:
    """A list of words as one cell."""
    return lambda item: ",".join(str(each) for each in item.get(name) or ()) or "-"


def plugins(item: Item) -> list[Item]:
    """The wheels that this worker has installed."""
    return [each for each in (item.get("wheel_sync") or {}).get("installed_wheels") or () if isinstance(each, dict)]


def _preview(item: Item) -> str:
    found = plugins(item)
    labels = [
        f"{each['package_name']}@{each['package_version']}"
        if each.get("package_name") and each.get("package_version")
        else str(each.get("wheel_name") or "-")
        for each in found[:_PREVIEW]
    ]
    more = [f"+{len(found) - _PREVIEW}"] if len(found) > _PREVIEW else []
    return ", ".join(labels + more) or "-"


WHO = (
    field("worker_id", is_id=True),
    field("state", style=_style, weight=5),
    Column(name="tags", raw=_words("tags"), weight=4),
)
# the first five as published: scripts cut them out by their place
TABLE = (
    *WHO,
    Column(name="plugins", raw=lambda item: str(len(plugins(item))), weight=2),
    Column(name="plugin_preview", raw=_preview, weight=1),
    Column(name="flows", raw=_words("flows"), weight=3),
    Column(
        name="last_seen",
        raw=lambda item: str(item.get("last_seen_at") or "-"),
        shown=lambda item: f"{ago(item.get('last_seen_at'))} ago",
        style=lambda item: "dim",
        weight=2,
    ),
)
PLUGINS = (
    *WHO,
    field("package", weight=3),
    field("version", weight=3),
    field("wheel_name", weight=1),
    Column(name="flows", raw=_words("flows"), weight=2),
    Column(name="tasks", raw=_words("tasks"), weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `workers`."""
    parser.add_argument("--scope", choices=["active", "all"], default="active", help="[default active]")
    parser.add_argument("--state", choices=STATES, default=None, help="only workers in this state")
    parser.add_argument("--include-hidden", action="store_true", help="hidden ones too")
    parser.add_argument("--limit", type=int, default=None, help="at most so many, 1 to 500 [default 100]")
    add_output(parser, "json", "table", "plugins")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them, whoever was seen last first."""
    found = session.client.get_workers(
        scope=args.scope,
        state=args.state,
        include_hidden=True if args.include_hidden else None,
        limit=args.limit,
    )
    match args.output:
        case "table":
            session.screen.table(TABLE, found)
        case "plugins":
            session.screen.table(PLUGINS, list(plugin_rows(found)))
        case _:
            session.screen.json(found)
    return 0


def plugin_rows(workers: Iterable[Item]) -> Iterable[Item]:
    """A row for each wheel of each worker, and one for a worker without."""
    for worker in workers:
        for plugin in plugins(worker) or [{}]:
            yield {
                **worker,
                "package": plugin.get("package_name") or None,
                "version": plugin.get("package_version") or None,
                "wheel_name": plugin.get("wheel_name") or None,
            }
