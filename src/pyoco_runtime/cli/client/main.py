"""The program `pyoco-client`: reads the command line, hands over to one command, and answers for its errors."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyoco_runtime.cli.client.commands import command, parser_for
from pyoco_runtime.errors import PyocoError

if TYPE_CHECKING:
    import argparse


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 something to fix, 130 interrupted."""
    given = sys.argv[1:] if argv is None else argv
    try:
        return _answered(parser_for(given).parse_args(given))
    except BrokenPipeError:
        return _quiet()
    except KeyboardInterrupt:
        return 130


def _answered(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except (PyocoError, TimeoutError) as error:
        from pyoco_runtime.cli.client.advice import advice

        for line in advice(error, args):
            print(line, file=sys.stderr)
        return 1


def _run(args: argparse.Namespace) -> int:
    chosen = command(args.command)
    from pyoco_runtime.cli.client.session import open_session  # httpx takes a moment: --help does not wait for it

    with open_session(args.server, args.api_key, args.api_key_header) as session:
        return chosen.run(args, session)


def _quiet() -> int:
    """Whoever read our output has had enough (`| head`): that is no failure."""
    # the interpreter would complain when it flushes stdout at its end
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
