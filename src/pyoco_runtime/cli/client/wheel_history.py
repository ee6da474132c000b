"""pyoco-client wheel-history: who uploaded and deleted which wheel."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.moments import clock, size
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, field

COLUMNS = (
    Column(
        name="occurred_at",
        raw=lambda item: str(item.get("occurred_at") or "-"),
        shown=lambda item: clock(item.get("occurred_at")),
        weight=4,
    ),
    field("action", style=lambda item: "red" if item.get("action") == "delete" else "green", weight=5),
    field("wheel_name", is_id=True),
    Column(
        name="size_bytes",
        raw=lambda item: str(item.get("size_bytes") or "-"),
        shown=lambda item: size(item.get("size_bytes")),
        weight=1,
    ),
    Column(name="tags", raw=lambda item: ",".join(item.get("tags") or ()) or "-", weight=3),
    Column(name="by", raw=lambda item: str((item.get("actor") or {}).get("api_key_id") or "-"), weight=2),
    Column(name="from", raw=lambda item: str((item.get("source") or {}).get("remote_addr") or "-"), weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `wheel-history`."""
    parser.add_argument("--limit", type=int, default=100, help="at most so many, 1 to 500 [default 100]")
    parser.add_argument("--wheel-name", default=None, help="filter by wheel filename")
    parser.add_argument("--action", choices=["upload", "delete"], default=None, help="filter by action")
    add_output(parser, "json", "table")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print it, the newest first."""
    found = session.client.list_wheel_history(limit=args.limit, wheel_name=args.wheel_name, action=args.action)
    if args.output == "json":
        session.screen.json(found)
    else:
        session.screen.table(COLUMNS, found)
    return 0
