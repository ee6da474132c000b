"""The program `pyoco-runtime`: reads the command line and hands over to one command."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from pyoco_runtime.errors import PyocoError

EXAMPLE = """\
smallest working example:
  pyoco-runtime --role all                 a gateway, a worker and an embedded nats-server on this machine
  pyoco-runtime actors                     what runs, on every process of this NATS
  pyoco-runtime restart all-myhost-123 http   restart one actor

Every option has an environment variable: --nats-url is PYOCO_NATS_URL, and so on. `--check` shows all of them.
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a correct example, and exits with 1."""

    def error(self, message: str) -> NoReturn:
        print(f"[{self.prog}][ERR-PYOCO-0018] {message}", file=sys.stderr)
        print("for example: pyoco-runtime --role all    (pyoco-runtime --help shows everything)", file=sys.stderr)
        raise SystemExit(1)


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 something to fix, 130 interrupted."""
    # before the slow imports: PID 1 ignores signals that have no handler
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        return _dispatch(sys.argv[1:] if argv is None else argv)
    except PyocoError as error:
        print(f"[pyoco-runtime][{error.err_id or 'ERR-PYOCO-0018'}] {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _dispatch(argv: list[str]) -> int:
    from pyoco_runtime.cli import actors, restart, run

    if argv and argv[0] == "actors":
        return actors.main(_parsed(actors.add_arguments, "actors", actors.__doc__, argv[1:]))
    if argv and argv[0] == "restart":
        return restart.main(_parsed(restart.add_arguments, "restart", restart.__doc__, argv[1:]))
    parser = Parser(
        prog="pyoco-runtime",
        description="Runs Pyoco flows on many machines. Commands: actors, restart; without one it starts the tree.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    run.add_arguments(parser)
    return run.main(parser.parse_args(argv))


def _parsed(
    add_arguments: Callable[[argparse.ArgumentParser], None], command: str, doc: str | None, argv: list[str]
) -> argparse.Namespace:
    parser = Parser(prog=f"pyoco-runtime {command}", description=doc, allow_abbrev=False)
    add_arguments(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
