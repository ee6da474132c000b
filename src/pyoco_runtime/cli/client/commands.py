"""Every command of pyoco-client, and the parser that knows them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from attrs import frozen

from pyoco_runtime.cli.client.parser import Parser

if TYPE_CHECKING:
    from pyoco_runtime.cli.client.session import Session

DEFAULT_SERVER = "http://127.0.0.1:8000"
DEFAULT_HEADER = "X-API-Key"

EXAMPLE = """\
smallest working example:
  pyoco-client submit --flow-name hello --param name=Ada
  pyoco-client watch <run_id> --until-terminal --output status
  pyoco-client list --output table

PYOCO_SERVER and PYOCO_API_KEY stand in for --server and --api-key. `pyoco-client <command> --help` shows its options.
"""


class Command(Protocol):
    """What the module of a command has."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare its options."""

    @staticmethod
    def run(args: argparse.Namespace, session: Session) -> int:
        """Do it; returns the exit code."""


@frozen
class Entry:
    """A command as --help lists it; its module is imported only when it is used, so that the program starts quickly."""

    module: str
    help: str
    example: str


COMMANDS: dict[str, Entry] = {
    "submit": Entry("submit", "Submit a run", "submit --flow-name main --param x=1 --tag default"),
    "submit-yaml": Entry(
        "submit_yaml",
        "Submit a flow.yaml run",
        "submit-yaml --workflow-file flow.yaml --flow-name main --tag default",
    ),
    "batch": Entry("batch", "Submit the runs of a JSONL file", "batch runs.jsonl"),
    "get": Entry("get", "Get run snapshot", "get <run_id> --records"),
    "tasks": Entry("tasks", "Get run tasks", "tasks <run_id> --output table"),
    "logs": Entry("logs", "Show what the tasks of a run printed", "logs <run_id> --task greet --follow"),
    "list": Entry("list_runs", "List runs (compat mode)", "list --status RUNNING --output table"),
    "list-vnext": Entry("list_vnext", "List runs (vnext delta mode)", "list-vnext --updated-after 0 --limit 20"),
    "watch": Entry("watch", "Watch run via SSE", "watch <run_id> --until-terminal --output status"),
    "cancel": Entry("cancel", "Cancel a run", "cancel --run-id <run_id> --wait --timeout-sec 30"),
    "workers": Entry("workers", "Get worker registry", "workers --scope all --output table"),
    "actors": Entry("actors", "Show the supervision trees", "actors"),
    "dlq": Entry("dlq", "List, show, replay or drop dead letters", "dlq list --reason execution_error"),
    "top": Entry("top", "Show runs and workers, live", "top --tag default"),
    "doctor": Entry("doctor", "Check the server and say what to do", "doctor"),
    "metrics": Entry("metrics", "Get metrics text", "metrics"),
    "wheels": Entry("wheels", "List wheel registry", "wheels --output table"),
    "wheel-history": Entry("wheel_history", "List wheel upload/delete history", "wheel-history --limit 20"),
    "wheel-upload": Entry(
        "wheel_upload",
        "Upload a wheel into registry",
        "wheel-upload --wheel-file dist/demo-1.0-py3-none-any.whl --tags default",
    ),
    "wheel-delete": Entry(
        "wheel_delete", "Delete a wheel from registry", "wheel-delete --name demo-1.0-py3-none-any.whl"
    ),
    "completion": Entry("completion", "Print a completion script for your shell", "completion bash"),
}


def command(name: str) -> Command:
    """The module of a command."""
    return cast(Command, import_module(f"pyoco_runtime.cli.client.{COMMANDS[name].module}"))


def parser_for(argv: Collection[str]) -> Parser:
    """The parser for this command line: only the commands that it names get their options."""
    return _parser([name for name in COMMANDS if name in argv])


def whole_parser() -> Parser:
    """The parser with the options of every command."""
    return _parser(COMMANDS)


def _parser(filled: Iterable[str]) -> Parser:
    parser = Parser(
        prog="pyoco-client",
        description="Talks to a gateway of pyoco-runtime, or of pyoco-server.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_server(parser)
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=Parser, metavar="<command>")
    made = {name: _add(subparsers.add_parser, name, entry) for name, entry in COMMANDS.items()}
    for name in filled:
        command(name).add_arguments(made[name])
    return parser


def _add(add_parser: Callable[..., Parser], name: str, entry: Entry) -> Parser:
    added = add_parser(name, help=entry.help, description=entry.help + ".")
    added.example = f"pyoco-client {entry.example}"
    return added


def add_server(parser: argparse.ArgumentParser) -> None:
    """Which gateway to ask, and as whom."""
    parser.add_argument(
        "--server",
        default=os.environ.get("PYOCO_SERVER") or DEFAULT_SERVER,
        metavar="URL",
        help=f"the gateway [PYOCO_SERVER; default {DEFAULT_SERVER}]",
    )
    parser.add_argument(
        "--api-key",
        default=os.environ.get("PYOCO_API_KEY") or None,
        metavar="KEY",
        help="Value for HTTP auth header [PYOCO_API_KEY]",
    )
    parser.add_argument(
        "--api-key-header",
        default=DEFAULT_HEADER,
        metavar="NAME",
        help=f"the header that carries the key [default {DEFAULT_HEADER}]",
    )
