"""What `top` knows: the runs of the list and the workers, kept current by events."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pyoco_runtime.cli.client.moments import ago, duration
from pyoco_runtime.cli.client.run_table import STATUS_STYLES, status_style
from pyoco_runtime.cli.client.table import Column, Item, field
from pyoco_runtime.cli.client.terminal import drawn
from pyoco_runtime.cli.client.workers import WHO

KEPT = 500  # runs; more than a screen has lines, so that one that goes uncovers another
_ORDER = {"RUNNING": 0, "CANCELLING": 1, "PENDING": 2}
_ENDED = 3


def took(run: Item) -> str:
    """How long it runs, or ran; `-` if it never began."""
    begin, end = run.get("start_time"), run.get("end_time")
    if not isinstance(begin, int | float):
        return "-"
    return duration((end if isinstance(end, int | float) else time.time()) - begin)


RUNS = (
    field("run_id", is_id=True),
    field("status", style=status_style, weight=6),
    field("flow_name", weight=5),
    field("tag", weight=3),
    Column(name="time", raw=took, weight=4),
    Column(name="updated", raw=lambda run: f"{ago(run.get('updated_at'))} ago", style=lambda run: "dim", weight=2),
    field("worker_id", weight=1),
)
WORKERS = (
    *WHO,
    Column(name="run", raw=lambda worker: str(worker.get("current_run_id") or "-"), weight=2),
    Column(
        name="last_seen",
        raw=lambda worker: f"{ago(worker.get('last_seen_at'))} ago",
        style=lambda worker: "dim",
        weight=3,
    ),
)


class Board:
    """A picture of runs and workers; rich draws it from a thread of its own, whenever it likes."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = Lock()
        self._runs: dict[str, Item] = {}
        self._workers: list[Item] = []
        self._counts: Mapping[str, float] = {}
        self._trouble = ""

    def listed(self, runs: Iterable[Item]) -> None:
        """The whole list anew."""
        with self._lock:
            self._runs = {str(run["run_id"]): run for run in runs}

    def changed(self, run: Item) -> None:
        """A run is new, or another."""
        with self._lock:
            self._runs[str(run["run_id"])] = run
            if len(self._runs) > 2 * KEPT:
                self._runs = {str(each["run_id"]): each for each in self._sorted()[:KEPT]}

    def gone(self, run_id: str) -> None:
        """A run is in the list no more."""
        with self._lock:
            self._runs.pop(run_id, None)

    def house(self, workers: Iterable[Item], counts: Mapping[str, float]) -> None:
        """The workers, and how many runs there are in each status."""
        with self._lock:
            self._workers, self._counts = list(workers), counts

    def trouble(self, text: str) -> None:
        """Why the picture may be old; empty when it is not."""
        with self._lock:
            self._trouble = text

    def _sorted(self) -> list[Item]:
        """What runs first, then what waits, then what ended last."""
        return sorted(self._runs.values(), key=_place)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        with self._lock:
            lines = [self._head(), *self._state(), Text()]
            room = height - len(lines)
            share = max(2, room // 3)  # of the screen, for workers
            workers = (
                drawn(WORKERS, self._workers[: share - 1], width) if self._workers else [Text("no workers", "red")]
            )
            runs = self._sorted()[: max(0, room - len(workers) - 2)]
            lines += [*workers, Text(), *(drawn(RUNS, runs, width) if runs else [Text("no runs", "dim")])]
        for line in lines[:height]:
            line.truncate(width, overflow="ellipsis")
            yield line

    def _head(self) -> Text:
        return Text.assemble(
            ("pyoco-client top", "bold"), f"  {self._server}  {time.strftime('%H:%M:%S')}  Ctrl-C ends it"
        )

    def _state(self) -> list[Text]:
        counts = [
            Text(f"{status} {int(count)}", STATUS_STYLES.get(status, "")) for status, count in self._counts.items()
        ]
        line = Text("  ").join([Text(f"workers {len(self._workers)}"), *counts])
        return [line, *([Text(self._trouble, "bold yellow")] if self._trouble else [])]


def _place(run: Mapping[str, Any]) -> tuple[int, float, str]:
    rank = _ORDER.get(str(run.get("status")), _ENDED)
    moment = (run.get("start_time") if rank < _ENDED else None) or run.get("updated_at") or 0.0
    return rank, -float(moment), str(run.get("run_id"))
