"""pyoco-client cancel: ask for a run to stop."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `cancel`."""
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--wait", action="store_true", help="wait until terminal status")
    parser.add_argument("--timeout-sec", type=int, default=30, help="how long --wait waits [default 30]")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Ask, wait if that is wanted, and print the run. Raises TimeoutError."""
    with session.screen.waiting(session.say(140, run_id=args.run_id)):
        found = session.client.cancel_run(args.run_id, wait=args.wait, timeout_sec=args.timeout_sec)
    session.screen.json(found)
    return 0
