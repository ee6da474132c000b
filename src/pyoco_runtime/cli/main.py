"""The program `pyoco-runtime`: reads the command line and hands over to one command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from pyoco_runtime.cli.parser import Parser, guarded

PROG = "pyoco-runtime"
SMALLEST = "pyoco-runtime --role all"
EXAMPLE = """\
smallest working example:
  pyoco-runtime --role all                 a gateway, a worker and an embedded nats-server on this machine
  pyoco-runtime demo                       the same with a run to watch, in the directory of the repository
  pyoco-runtime actors                     what runs, on every process of this NATS
  pyoco-runtime restart all-myhost-123 http   restart one actor

Every option has an environment variable: --nats-url is PYOCO_NATS_URL, and so on. `--check` shows all of them.
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 something to fix, 130 interrupted."""
    return guarded(PROG, _dispatch, argv)


def _dispatch(argv: list[str]) -> int:
    from pyoco_runtime.cli import actors, restart, run

    if argv and argv[0] == "demo":
        from pyoco_runtime.cli import demo  # it needs the client, and nobody else does

        return demo.main(_parsed(demo.add_arguments, "demo", demo.__doc__, argv[1:]))
    if argv and argv[0] == "actors":
        return actors.main(_parsed(actors.add_arguments, "actors", actors.__doc__, argv[1:]))
    if argv and argv[0] == "restart":
        return restart.main(_parsed(restart.add_arguments, "restart", restart.__doc__, argv[1:]))
    parser = Parser(
        PROG,
        example=SMALLEST,
        description="Runs Pyoco flows on many machines. Commands: demo, actors, restart; else it starts the tree.",
        epilog=EXAMPLE,
    )
    run.add_arguments(parser)
    return run.main(parser.parse_args(argv))


def _parsed(
    add_arguments: Callable[[argparse.ArgumentParser], None], command: str, doc: str | None, argv: list[str]
) -> argparse.Namespace:
    parser = Parser(f"{PROG} {command}", example=SMALLEST, description=doc)
    add_arguments(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
