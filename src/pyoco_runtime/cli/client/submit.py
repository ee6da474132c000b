"""pyoco-client submit: one run of a flow that workers know."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output, tags_from
from pyoco_runtime.cli.client.params import params_from
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.submitted import tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `submit`."""
    parser.add_argument("--flow-name", default="main", help="the flow to run [default main]")
    parser.add_argument("--params", default=None, metavar="JSON", help="JSON object, e.g. '{\"x\":1}'")
    parser.add_argument("--params-file", default=None, metavar="FILE", help="JSON/YAML object file; wins over --params")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="key=value pair (repeatable, overrides --params and --params-file)",
    )
    parser.add_argument("--tag", default=None, help="workers with this tag take the run")
    parser.add_argument("--tags", default=None, help="comma-separated tags, for display")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Submit it and print its id."""
    accepted = session.client.submit_run(
        args.flow_name, params=params_from(args, session), tag=args.tag, tags=tags_from(args.tags)
    )
    tell(accepted, session)
    return 0
