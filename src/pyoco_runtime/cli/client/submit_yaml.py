"""pyoco-client submit-yaml: a run that brings its own flow."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.options import add_output, file_bytes
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.submitted import tell
from pyoco_runtime.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `submit-yaml`."""
    parser.add_argument("--workflow-file", required=True, metavar="FILE", help="path to flow.yaml")
    parser.add_argument("--flow-name", required=True, help="how the run is called")
    parser.add_argument("--tag", required=True, help="workers with this tag take the run")
    add_output(parser, "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Submit it and print its id."""
    try:
        workflow = file_bytes(args.workflow_file, session).decode()
    except UnicodeDecodeError as error:
        raise UserError(session.say(120, path=args.workflow_file, reason=error)) from error
    tell(session.client.submit_run_yaml(workflow, flow_name=args.flow_name, tag=args.tag), session)
    return 0
