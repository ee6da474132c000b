"""pyoco-client list: the runs that changed last."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output, add_run_filters
from pyoco_runtime.cli.client.run_table import COLUMNS
from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `list`."""
    add_run_filters(parser)
    parser.add_argument("--full", action="store_true", help="whole snapshots instead of summaries")
    parser.add_argument("--limit", type=int, default=None, help="at most so many, 1 to 200 [default 50]")
    add_output(parser, "json", "table")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print them, the newest first."""
    found = session.client.list_runs(status=args.status, flow=args.flow, tag=args.tag, full=args.full, limit=args.limit)
    if args.output == "json":
        session.screen.json(found)
    else:
        session.screen.table(COLUMNS, found)
    return 0
