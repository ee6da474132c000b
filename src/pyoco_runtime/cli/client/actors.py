"""pyoco-client actors: the supervision trees of all processes, asked of the gateway."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyoco_runtime.cli.client.moments import ago
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, Item

_STYLES = {"running": "green", "done": "dim", "waiting": "yellow", "starting": "yellow", "stopping": "yellow"}


def _style(item: Item) -> str:
    return _STYLES.get(str(item.get("state")), "red" if item.get("state") else "bold")


def _crash(item: Item) -> str:
    crash = item.get("last_crash")
    return f"{crash['type']}: {crash['message']}, {ago(crash['at'])} ago" if crash else ""


COLUMNS = (
    Column(
        name="actor",
        raw=lambda item: item["label"],
        style=lambda item: "bold" if item.get("supervisor", True) else "",
        is_id=True,
    ),
    Column(name="state", raw=lambda item: item.get("state") or "", style=_style, weight=5),
    Column(name="since", raw=lambda item: ago(item["since"]) if "since" in item else "", weight=2),
    Column(
        name="restarts",
        raw=lambda item: str(item.get("restarts", "")),
        style=lambda item: "yellow" if item.get("restarts") else "dim",
        weight=4,
    ),
    Column(name="mailbox", raw=lambda item: str("" if item.get("mailbox") is None else item["mailbox"]), weight=3),
    Column(name="last crash", raw=_crash, style=lambda item: "red", weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `actors`."""
    add_output(parser, "table", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them."""
    processes = session.client.actors()
    if args.output == "json":
        session.screen.json(processes)
    else:
        session.screen.table(COLUMNS, list(rows(processes)))
    return 0


def rows(processes: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    """A head for each process, and its tree below."""
    for each in processes:
        yield {"label": f"{each['process']}  {each['role']} · pid {each['pid']} on {each['host']} · {each['version']}"}
        yield from _below(each["tree"], 1)


def _below(actor: Mapping[str, Any], depth: int) -> Iterator[Item]:
    yield {**actor, "label": "  " * depth + str(actor["name"])}
    for child in actor["children"]:
        yield from _below(child, depth + 1)
