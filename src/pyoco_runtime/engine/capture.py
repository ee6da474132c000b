"""Who prints: sys.stdout and sys.stderr know, thread by thread, which task is to be told what is written to them."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

Listener = Callable[[str, str], None]
"""Is told the stream's name and the text."""


KEPT = 16  # taps of streams that user code put there, one after the other


class _Ears(threading.local):
    listener: Listener | None = None


_ears = _Ears()


class Tap:
    """Stands where a stream stood: passes all on to it, and tells the listener of the writing thread."""

    def __init__(self, name: str, stream: TextIO | None) -> None:
        self.tap_name = name
        self.stream = stream  # None in a program without a console

    def write(self, text: str) -> int:
        """Write and tell."""
        listener = _ears.listener
        if listener is None:
            return len(text) if self.stream is None else self.stream.write(text)
        _ears.listener = None  # a stream that ends in another tap must not be heard twice, nor our own trouble
        try:
            if self.stream is not None:
                self.stream.write(text)
            if text:
                listener(self.tap_name, text)
        finally:
            _ears.listener = listener
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each and tell."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream."""
        if self.stream is not None:
            self.stream.flush()

    def __iter__(self) -> Iterator[str]:
        return iter(self.stream or ())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Capture:
    """The taps of this process: they are there while at least one run needs them.

    It is not pyoco's own capture, which exchanges the streams for every run: when runs overlap, each puts back what
    the other had put there. A tap is not freed soon: `print` in another thread may be in the middle of using it, and
    CPython before 3.14 holds no reference of its own to sys.stdout.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._taps: deque[Tap] = deque(maxlen=KEPT)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have the taps in place for a block."""
        with self._lock:
            self._users += 1
            # Looked at every time: user code may have put a stream of its own there.
            if not isinstance(sys.stdout, Tap):
                sys.stdout = self._tap("stdout", sys.stdout)
            if not isinstance(sys.stderr, Tap):
                sys.stderr = self._tap("stderr", sys.stderr)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    sys.stdout = _untapped(sys.stdout)
                    sys.stderr = _untapped(sys.stderr)

    def _tap(self, name: str, stream: TextIO | None) -> TextIO:
        for tap in self._taps:
            if tap.tap_name == name and tap.stream is stream:
                return cast("TextIO", tap)
        self._taps.append(Tap(name, stream))
        return cast("TextIO", self._taps[-1])


def _untapped(stream: Any) -> Any:
    while isinstance(stream, Tap):
        stream = stream.stream
    return stream


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener what this thread writes in the block."""
    before = _ears.listener
    _ears.listener = listener
    try:
        yield
    finally:
        _ears.listener = before


CAPTURE = Capture()
"""There is one, as there is one sys.stdout."""


def _deafen() -> None:
    _ears.listener = None


# A forked process has a copy of us whose locks nobody will open; what it prints is its own affair.
os.register_at_fork(after_in_child=_deafen)
