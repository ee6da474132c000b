"""pyoco-client completion: a script that completes its commands and options in your shell."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The argument of `completion`."""
    parser.add_argument("shell", choices=["bash", "zsh"])


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the script: `source <(pyoco-client completion bash)`."""
    session.screen.lines(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The completion script for that shell."""
    import shtab  # only this command needs it

    from pyoco_runtime.cli.client.commands import whole_parser

    return str(shtab.complete(whole_parser(), shell)) + "\n"
