"""The screen of a person: colours, tables that fit, a spinner while there is something to wait for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from pyoco_runtime.cli.client.screen import Screen
from pyoco_runtime.cli.client.table import GAP, Column, Item, fitted


class Terminal(Screen):
    """Writes for people, in the width that there is. rich honours NO_COLOR and TERM."""

    is_terminal = True

    def __init__(self, console: Console | None = None, errors: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.errors = errors or Console(highlight=False, stderr=True)

    def line(self, text: str, style: str = "") -> None:
        """One line; the terminal may wrap it, we do not."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def remark(self, head: str, text: str, style: str = "") -> None:
        """Wrapped between words; what follows stands under its beginning."""
        room = max(20, self.console.width - cell_len(head))
        for at, line in enumerate(Text(text, style).wrap(self.console, room)):
            self.console.print(Text(head if at == 0 else " " * cell_len(head), style) + line, soft_wrap=True)

    def table(self, columns: Sequence[Column], items: Sequence[Item]) -> None:
        """A row for each item; the least important columns are cut or left out."""
        if not items:
            self.line("(no items)", "dim")
            return
        for line in drawn(columns, items, self.console.width):
            self.console.print(line, soft_wrap=True)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """A spinner on stderr, gone at the end of the block."""
        return self.errors.status(text)


def drawn(columns: Sequence[Column], items: Sequence[Item], width: int) -> list[Text]:
    """The lines of a table: a head, and one for each item."""
    rows = [[column.for_people(item) for column in columns] for item in items]
    wanted = [max(len(column.name), *(cell_len(row[at]) for row in rows)) for at, column in enumerate(columns)]
    widths = fitted(wanted, columns, width)
    head = _joined(
        [Text(_cut(column.name, size), "bold") for column, size in zip(columns, widths, strict=True) if size]
    )
    body = [
        _joined(
            [
                Text(_cut(cell, size), column.style(item))
                for cell, column, size in zip(row, columns, widths, strict=True)
                if size
            ]
        )
        for row, item in zip(rows, items, strict=True)
    ]
    return [head, *body]


def _joined(cells: Sequence[Text]) -> Text:
    line = Text(" " * GAP).join(cells)
    line.rstrip()
    return line


def _cut(text: str, size: int) -> str:
    """The text in exactly so many cells: a Japanese character takes two."""
    if cell_len(text) <= size:
        return set_cell_size(text, size)
    return set_cell_size(text, size - 1) + "…"
