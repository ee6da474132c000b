"""What every program does with its command line and with an error that the user can mend."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from pyoco_runtime.errors import PyocoError


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a correct example, and exits with 1. Its epilog keeps its lines."""

    def __init__(self, prog: str, *, example: str, description: str | None = None, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._example = example

    def error(self, message: str) -> NoReturn:
        print(f"[{self.prog}][ERR-PYOCO-0018] {message}", file=sys.stderr)
        print(f"for example: {self._example}    ({self.prog} --help shows everything)", file=sys.stderr)
        raise SystemExit(1)


def guarded(prog: str, work: Callable[[list[str]], int], argv: list[str] | None) -> int:
    """Run the program; returns the exit code: 0 done, 1 something to fix, 130 interrupted."""
    # before the slow imports: PID 1 ignores signals that have no handler
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        return work(sys.argv[1:] if argv is None else argv)
    except PyocoError as error:
        print(f"[{prog}][{error.err_id or 'ERR-PYOCO-0018'}] {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
