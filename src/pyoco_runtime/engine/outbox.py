"""What a run has to report and nobody has fetched yet; any thread may add."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyoco_runtime.model.progress import Progress, TaskLogged, TaskStarted

LOG_MAX_CHARS = 16_384  # of a task's stream between two fetches; readers keep no more than that either


class Outbox:
    """Events in order. What a task prints until the next fetch is one event, and only its end if it is much."""

    def __init__(self, on_first: Callable[[], None], on_task: Callable[[], None] | None = None) -> None:
        """`on_first` is called, in whichever thread, when there is something after there was nothing.

        `on_task` is called when a task is about to begin.
        """
        self._on_first = on_first
        self._on_task = on_task
        self._lock = threading.Lock()
        self._waiting: list[Progress | _Printed] = []
        self._printed: dict[tuple[str, str], _Printed] = {}

    def add(self, event: Progress) -> None:
        """Report an event."""
        with self._lock:
            is_first = not self._waiting
            if self._printed and isinstance(event, TaskStarted):
                # What it prints from now on belongs to this start, not to the one before.
                for stream in ("stdout", "stderr"):
                    self._printed.pop((event.task, stream), None)
            self._waiting.append(event)
        if is_first:
            self._on_first()
        if self._on_task is not None and isinstance(event, TaskStarted):
            self._on_task()

    def printed(self, task: str, stream: str, text: str) -> None:
        """Report what a task has printed."""
        with self._lock:
            is_first = not self._waiting
            printed = self._printed.get((task, stream))
            if printed is None:
                printed = self._printed[task, stream] = _Printed(task, stream)
                self._waiting.append(printed)
            printed.append(text)
        if is_first:
            self._on_first()

    def fetch(self) -> list[Progress]:
        """Take all that waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if self._printed:
                self._printed = {}
        return [each.event() if isinstance(each, _Printed) else each for each in waiting]


class _Printed:
    """The end of what a task has printed."""

    def __init__(self, task: str, stream: str) -> None:
        self._task = task
        self._stream = stream
        self._parts: list[str] = []
        self._chars = 0

    def append(self, text: str) -> None:
        self._parts.append(text)
        self._chars += len(text)
        if self._chars > 2 * LOG_MAX_CHARS or len(self._parts) > LOG_MAX_CHARS:  # not at every character over it
            self._shrink()

    def event(self) -> TaskLogged:
        self._shrink()
        return TaskLogged(self._task, self._stream, self._parts[0])

    def _shrink(self) -> None:
        text = "".join(self._parts)[-LOG_MAX_CHARS:]
        self._parts = [text]
        self._chars = len(text)
