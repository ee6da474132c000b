"""How a command line that cannot be understood is answered."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from pyoco_runtime.messages import language, text


class Parser(argparse.ArgumentParser):
    """Says what is wrong, with a correct example of the same command, and exits with 1."""

    example = "pyoco-client submit --flow-name main --param x=1 --tag default"

    def error(self, message: str) -> NoReturn:
        lang = language()
        print(f"[pyoco-client][ERR-PYOCO-0018] {message}", file=sys.stderr)
        if "unrecognized arguments" in message and any(f" {name}" in message for name in _EARLY):
            print(text("MSG-PYOCO-0111", lang), file=sys.stderr)
        print(text("MSG-PYOCO-0110", lang, example=self.example, prog=self.prog), file=sys.stderr)
        raise SystemExit(1)


_EARLY = ("--server", "--api-key", "--api-key-header")  # options of the program, which stand before the command
