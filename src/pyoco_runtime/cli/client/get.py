"""pyoco-client get: the snapshot of a run."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `get`."""
    parser.add_argument("run_id")
    parser.add_argument("--records", action="store_true", help="include task_records")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print it."""
    get = session.client.get_run_with_records if args.records else session.client.get_run
    session.screen.json(get(args.run_id))
    return 0
