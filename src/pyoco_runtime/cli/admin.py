"""The program `pyoco-server-admin`: API keys, with the command line and the output of the published program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from pyoco_runtime.cli.parser import Parser, guarded

PROG = "pyoco-server-admin"
SMALLEST = f"{PROG} api-key create --tenant demo"
EXAMPLE = """\
smallest working example:
  pyoco-server-admin api-key create --tenant demo            prints a new key, which is shown only this once
  pyoco-server-admin api-key create --tenant ops --admin     a key that may also use the routes for administrators
  pyoco-server-admin api-key list --output table             who has keys
  pyoco-server-admin api-key revoke --key-id 0123456789abcdef01234567

A gateway asks for keys with PYOCO_HTTP_AUTH_MODE=api_key. PYOCO_AUTH_PEPPER must be the same here and there.
"""


class AdminParser(Parser):
    """The parser of the program and, as argparse wants it, of its commands."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, example=SMALLEST, **options)


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    return guarded(PROG, _dispatch, argv)


def _dispatch(argv: list[str]) -> int:
    from pyoco_runtime.cli import api_keys

    args = _parser().parse_args(argv)
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "create": api_keys.create,
        "list": api_keys.show,
        "revoke": api_keys.revoke,
    }
    return commands[args.api_key_command](args)


def _parser() -> AdminParser:
    parser = AdminParser(PROG, description="Manages the API keys of the gateway.", epilog=EXAMPLE)
    _add_nats_url(parser, None)
    subjects = parser.add_subparsers(dest="command", required=True, metavar="api-key")
    keys = subjects.add_parser("api-key", help="keys for the HTTP API", description="Keys for the HTTP API.")
    verbs = keys.add_subparsers(dest="api_key_command", required=True, metavar="create | list | revoke")
    _add_create(verbs.add_parser("create", help="make a key and print it, once", description="Makes a key."))
    _add_list(verbs.add_parser("list", help="all keys, without their secrets", description="Lists all keys."))
    _add_revoke(verbs.add_parser("revoke", help="make a key invalid", description="Makes a key invalid, at once."))
    return parser


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", required=True, help="whose key it is; a tenant sees its own runs only")
    parser.add_argument("--admin", action="store_true", help="the key may also use the routes for administrators")
    _add_nats_url(parser, argparse.SUPPRESS)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", choices=["json", "table"], default="json", help="[default json]")
    _add_nats_url(parser, argparse.SUPPRESS)


def _add_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key-id", required=True, help="what stands between pyoco_ and the dot of the key")
    _add_nats_url(parser, argparse.SUPPRESS)


def _add_nats_url(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Before the command, as the published program has it, or after it; a default of the latter would win."""
    text = "where NATS is [PYOCO_NATS_URL; default nats://127.0.0.1:4222]"
    parser.add_argument("--nats-url", default=default, help=text)


if __name__ == "__main__":
    sys.exit(main())
