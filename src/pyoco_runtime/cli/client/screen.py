"""Where the result of a command goes: here to a pipe or a file, in terminal.py to a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from pyoco_runtime.cli.client.table import Column, Item, one_line


class Screen:
    """Plain lines, raw values, nothing cut off: made for programs. A subclass writes for people."""

    is_terminal = False

    def json(self, value: object) -> None:
        """One value as one line of JSON."""
        self.line(json.dumps(value, ensure_ascii=True))

    def line(self, text: str, style: str = "") -> None:
        """One line, sent at once: whoever reads may be waiting for it."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def remark(self, head: str, text: str, style: str = "") -> None:
        """A text behind its head, on one line; a person gets it wrapped, with what follows under its beginning."""
        self.line(head + text, style)

    def lines(self, text: str) -> None:
        """Text that has its own line ends."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def table(self, columns: Sequence[Column], items: Sequence[Item]) -> None:
        """A row for each item, in columns as wide as their longest value."""
        if not items:
            self.line("(no items)")
            return
        rows = [[one_line(column.raw(item)) for column in columns] for item in items]
        widths = [max(len(column.name), *(len(row[at]) for row in rows)) for at, column in enumerate(columns)]
        for row in ([column.name for column in columns], *rows):
            self.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Tell a person that there is something to wait for; a program knows."""
        return nullcontext()


def note(text: str) -> None:
    """A remark to the person at the keyboard, beside the result."""
    print(text, file=sys.stderr, flush=True)
