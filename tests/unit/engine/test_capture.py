"""Who printed what, with many threads and many runs."""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest

from pyoco_runtime.engine.capture import CAPTURE, Capture, Tap, listening
from pyoco_runtime.engine.outbox import LOG_MAX_CHARS, Outbox
from pyoco_runtime.model.progress import TaskLogged, TaskStarted


def on_a_console(test: Callable[..., None]) -> Callable[..., None]:
    """Give the test a sys.stdout of its own; pytest exchanges it between a fixture and its test."""

    def run(monkeypatch: pytest.MonkeyPatch) -> None:
        console = io.StringIO()
        monkeypatch.setattr(sys, "stdout", console)
        test(console, monkeypatch)

    run.__doc__ = test.__doc__
    return run


class Heard(list[tuple[str, str]]):
    """A listener that remembers."""

    def __call__(self, stream: str, text: str) -> None:
        self.append((stream, text))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self)


@on_a_console
def test_each_thread_is_heard_by_its_own_listener(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """And everything goes to the console, too."""
    heard = [Heard() for _ in range(4)]
    start = threading.Barrier(4)

    def task(number: int) -> None:
        with CAPTURE.installed(), listening(heard[number]):
            start.wait()
            for _ in range(500):
                print(number, end="")

    threads = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.text for each in heard] == [str(number) * 500 for number in range(4)]
    assert len(console.getvalue()) == 2000
    assert sys.stdout is console


@on_a_console
def test_the_streams_come_back_when_the_last_run_ends(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlapping runs in any order leave nothing behind, however often."""
    capture = Capture()
    for _ in range(1000):
        first, second = capture.installed(), capture.installed()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert isinstance(getattr(sys, "stdout"), Tap)  # noqa: B009 - mypy would take it for one ever after
        second.__exit__(None, None, None)
        assert sys.stdout is console


@on_a_console
def test_a_stream_of_user_code_over_ours_is_heard_once(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper around our tap gets a tap of its own; the text is told once."""
    heard = Heard()

    class Wrapper(io.TextIOBase):
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def write(self, text: str) -> int:
            return int(self.inner.write(text))  # type: ignore[attr-defined]

    with CAPTURE.installed():
        sys.stdout = Wrapper(sys.stdout)
        with CAPTURE.installed(), listening(heard):
            print("x", end="")
    assert heard.text == "x"
    assert console.getvalue() == "x"


@on_a_console
def test_a_redirection_by_user_code_wins(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without us, redirect_stdout takes the text away; and nothing of it stays."""
    heard = Heard()
    with CAPTURE.installed(), listening(heard):
        with redirect_stdout(io.StringIO()) as mine:
            print("mine", end="")
        print("theirs", end="")
    assert (mine.getvalue(), heard.text, console.getvalue()) == ("mine", "theirs", "theirs")
    assert sys.stdout is console


@on_a_console
def test_a_tap_is_a_stream(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries ask streams many things; and a program without a console has none."""
    heard = Heard()
    with CAPTURE.installed(), listening(heard):
        sys.stdout.writelines(["a", "b"])
        sys.stdout.flush()
        assert not sys.stdout.isatty()
    assert heard.text == "ab"
    monkeypatch.setattr(sys, "stdout", None)
    with CAPTURE.installed(), listening(heard):
        print("c", end="")
        sys.stdout.flush()
    assert heard.text == "abc"
    assert sys.stdout is None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@on_a_console
def test_a_forked_process_is_not_heard(console: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a copy of our locks, which nobody opens there."""
    lock = threading.Lock()

    def listener(stream: str, text: str) -> None:
        with lock:
            pass

    with CAPTURE.installed(), listening(listener):
        with lock:
            pid = os.fork()
            if pid == 0:
                print("in the copy")  # would wait for ever
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_what_is_printed_between_two_fetches_is_one_event() -> None:
    """In its place among the others, and a new start begins anew."""
    firsts: list[None] = []
    outbox = Outbox(lambda: firsts.append(None))
    outbox.add(TaskStarted("a", 1.0))
    for letter in "xyz":
        outbox.printed("a", "stdout", letter)
    outbox.printed("a", "stderr", "!")
    outbox.add(TaskStarted("a", 2.0))
    outbox.printed("a", "stdout", "again")
    assert outbox.fetch() == [
        TaskStarted("a", 1.0),
        TaskLogged("a", "stdout", "xyz"),
        TaskLogged("a", "stderr", "!"),
        TaskStarted("a", 2.0),
        TaskLogged("a", "stdout", "again"),
    ]
    outbox.printed("a", "stdout", "more")
    assert outbox.fetch() == [TaskLogged("a", "stdout", "more")]
    assert outbox.fetch() == []
    assert len(firsts) == 2


def test_much_output_keeps_its_end() -> None:
    """A task that prints without end needs no memory without end."""
    outbox = Outbox(lambda: None)
    for number in range(100_000):
        outbox.printed("a", "stdout", f"{number}\n")
    outbox.printed("b", "stdout", "x" * 1_000_000 + "end")
    (a, b) = outbox.fetch()
    assert isinstance(a, TaskLogged)
    assert isinstance(b, TaskLogged)
    assert (len(a.text), a.text[-6:]) == (LOG_MAX_CHARS, "99999\n")
    assert (len(b.text), b.text[-3:]) == (LOG_MAX_CHARS, "end")


def test_a_tap_outlives_its_runs() -> None:
    """A print in another thread may be in the middle of it: CPython would write to freed memory."""
    capture = Capture()
    with capture.installed():
        tap = weakref.ref(getattr(sys, "stdout"))  # noqa: B009 - as above
    gc.collect()
    assert tap() is not None
    with capture.installed():
        assert getattr(sys, "stdout") is tap()  # noqa: B009 - as above
