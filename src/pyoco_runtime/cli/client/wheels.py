"""pyoco-client wheels: what the registry holds."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.moments import clock, size
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, field

COLUMNS = (
    field("name", is_id=True),
    Column(
        name="size_bytes",
        raw=lambda item: str(item.get("size_bytes", "-")),
        shown=lambda item: size(item.get("size_bytes")),
        weight=3,
    ),
    Column(name="tags", raw=lambda item: ",".join(item.get("tags") or ()) or "-", weight=4),
    Column(
        name="modified",
        raw=lambda item: str(item.get("modified") or "-"),
        shown=lambda item: (
            clock(item.get("modified")) if isinstance(item.get("modified"), float) else str(item.get("modified") or "-")
        ),
        weight=2,
    ),
    field("sha256_hex", style=lambda item: "dim", weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `wheels`."""
    add_output(parser, "json", "table")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them by name."""
    found = session.client.list_wheels()
    if args.output == "json":
        session.screen.json(found)
    else:
        session.screen.table(COLUMNS, found)
    return 0
