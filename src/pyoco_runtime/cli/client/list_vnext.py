"""pyoco-client list-vnext: the runs page by page, or what changed since."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client import list_runs
from pyoco_runtime.cli.client.run_table import COLUMNS
from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `list-vnext`."""
    list_runs.add_arguments(parser)
    parser.add_argument("--updated-after", type=float, default=None, help="only runs that changed after this unix time")
    parser.add_argument("--cursor", default=None, help="the next_cursor of the page before")
    parser.add_argument("--workflow-yaml-sha256", default=None, help="only runs of this flow.yaml")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print one page."""
    page = session.client.list_runs_vnext(
        status=args.status,
        flow=args.flow,
        tag=args.tag,
        full=args.full,
        limit=args.limit,
        updated_after=args.updated_after,
        cursor=args.cursor,
        workflow_yaml_sha256=args.workflow_yaml_sha256,
    )
    if args.output == "json":
        session.screen.json(page)
        return 0
    session.screen.table(COLUMNS, page["items"])
    if page.get("next_cursor"):
        session.screen.line(f"next_cursor: {page['next_cursor']}")
    return 0
