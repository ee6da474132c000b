"""A progress bar on stderr, for people only: stdout is for the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[[int, int], None]
"""How much is done, of how much."""


@contextmanager
def bar(text: str, *, is_bytes: bool = False) -> Iterator[Update]:
    """A bar while the block runs; nothing if nobody looks at stderr."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console  # rich takes a moment, and only people need it
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    count = DownloadColumn(binary_units=True) if is_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
