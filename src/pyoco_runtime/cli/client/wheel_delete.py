"""pyoco-client wheel-delete: take a wheel out of the registry."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `wheel-delete`."""
    parser.add_argument("--name", required=True, help="wheel filename")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Delete it."""
    session.screen.json(session.client.delete_wheel(args.name))
    return 0
