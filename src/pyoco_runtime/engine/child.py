"""The program of a child process: python -m pyoco_runtime.engine.child <fd of its connection>."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from typing import NoReturn

from attrs import frozen

from pyoco_runtime.engine.capture import CAPTURE
from pyoco_runtime.engine.driver import Driver, FindFlow
from pyoco_runtime.engine.finder import Finder
from pyoco_runtime.engine.frames import Cancel, Execute, Found, Frame, Ready, Report, SetUp, Unfit, Unpacker, packed
from pyoco_runtime.engine.inventory import take_inventory
from pyoco_runtime.engine.outbox import Outbox
from pyoco_runtime.engine.resolver import load_resolver, no_flows, parse_spec
from pyoco_runtime.errors import UserError

TICK_SEC = 0.02  # how late a log line or a cancel may be; a run that ends sooner is told of in one frame
QUIET_TICKS = 50  # after a second without news the watcher sleeps until there are some
_READ_BYTES = 262_144


def main() -> None:
    """Serve the connection whose number is the first argument, until it closes."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    _prepare_process(connection)
    with CAPTURE.installed():  # from before the first import of user code: its log handlers keep the stream they find
        child = Child(connection)
        child.serve()


class Child:
    """Executes one order after the other in the main thread, while a watcher listens and reports."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unpacker = Unpacker()
        self._frames: deque[Frame] = deque()
        self._reading = threading.Lock()
        self._sending = threading.Lock()
        self._current: _Current | None = None
        self._is_parked = False
        self._sent_at = 0.0
        self._wake_out, self._wake_in = os.pipe()

    def serve(self) -> NoReturn:
        """Become ready, then do as ordered, for ever."""
        find = self._become_ready()
        threading.Thread(target=self._watch, name="watcher", daemon=True).start()
        self._send(Ready())
        while True:
            order = self._next()
            if isinstance(order, Execute):
                self._execute(order, find)

    def _become_ready(self) -> FindFlow:
        set_up = self._next()
        assert isinstance(set_up, SetUp)
        try:
            _set_path(set_up)
            resolver = load_resolver(set_up.resolver) if set_up.resolver else no_flows
        except UserError as error:
            self._send(Unfit(str(error)))
            _exit(1)
        if set_up.is_scout:
            self._send(Found(take_inventory(resolver)))
            _exit(0)
        return Finder(resolver, set_up.callable_allow)

    def _execute(self, order: Execute, find: FindFlow) -> None:
        outbox = Outbox(self._wake, on_task=self._flush_if_rested)
        driver = Driver(order.job, order.attempt, dict(order.job.params), outbox)
        self._current = _Current(order.number, driver, outbox)
        self._wake()  # even if it has nothing to say, it may be cancelled
        driver.execute(find)
        self._current = None
        self._flush(outbox)

    # -- the connection --------------------------------------------------------------------------------------------

    def _next(self) -> Frame:
        """Wait for the next frame. Only between orders: while one is executed, the watcher reads."""
        with self._reading:
            while not self._frames:
                self._read(0)
            return self._frames.popleft()

    def _read(self, flags: int) -> None:
        try:
            data = self._connection.recv(_READ_BYTES, flags)
        except BlockingIOError:
            return
        except OSError:  # whoever sent us something and died, or user code that closed what is not its own
            _exit(1)
        if not data:
            _exit(0)
        self._frames.extend(self._unpacker.feed(data))

    def _send(self, frame: Frame) -> None:
        try:
            self._connection.sendall(packed(frame))
        except OSError:
            _exit(1)

    def _flush(self, outbox: Outbox) -> bool:
        with self._sending:  # held from fetching to sending: the order of events is their meaning
            events = outbox.fetch()
            if events:
                self._sent_at = time.monotonic()
                self._send(Report(tuple(events)))
        return bool(events)

    def _flush_if_rested(self) -> None:
        """Before a task begins, so that it is known which one has crashed; but small runs in series stay one frame."""
        current = self._current
        if current is not None and time.monotonic() - self._sent_at > TICK_SEC:
            self._flush(current.outbox)

    # -- the watcher -----------------------------------------------------------------------------------------------

    def _watch(self) -> NoReturn:
        quiet_ticks = 0
        while True:
            is_quiet = not self._look()
            quiet_ticks = quiet_ticks + 1 if is_quiet else 0
            if quiet_ticks > QUIET_TICKS:
                self._park()
                quiet_ticks = 0
            else:
                time.sleep(TICK_SEC)

    def _look(self) -> bool:
        """Pass on what has come in, and what has happened; says whether there was something."""
        current = self._current
        if current is None:
            return False
        if self._reading.acquire(blocking=False):  # else the order is over, and the main thread reads again
            try:
                self._read(socket.MSG_DONTWAIT)
                self._obey_cancel(current)
            finally:
                self._reading.release()
        return self._flush(current.outbox)

    def _obey_cancel(self, current: _Current) -> None:
        for frame in tuple(self._frames):
            if isinstance(frame, Cancel):
                self._frames.remove(frame)
                if frame.number == current.number:
                    current.driver.stop()

    def _wake(self) -> None:
        if self._is_parked:
            self._is_parked = False
            os.write(self._wake_in, b"!")

    def _park(self) -> None:
        """Sleep until there is something to report, or, during an order, something to read."""
        poll = select.poll()
        poll.register(self._wake_out, select.POLLIN)
        self._is_parked = True
        if (current := self._current) is not None:  # looked at after the line above, or a wake-up could be missed
            poll.register(self._connection, select.POLLIN)
            if self._flush(current.outbox):
                self._is_parked = False
                return
        for descriptor, _ in poll.poll():
            if descriptor == self._wake_out:
                os.read(self._wake_out, 64)
        self._is_parked = False


@frozen(eq=False)
class _Current:
    number: int
    driver: Driver
    outbox: Outbox


def _prepare_process(connection: socket.socket) -> None:
    if sys.stderr is not None:
        faulthandler.enable()  # a segmentation fault says on stderr where it was
    connection.set_inheritable(False)
    os.register_at_fork(after_in_child=connection.close)  # or our death would go unnoticed while a copy lives
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the parent, which tells us if we are to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)  # what was printed before a crash must be seen


def _set_path(set_up: SetUp) -> None:
    file = parse_spec(set_up.resolver).file if set_up.resolver else None
    sys.path[:0] = [*set_up.overlay, *([str(file.parent)] if file else [])]
    # What the parent can import, we can, too.
    sys.path.extend(path for path in set_up.path if path not in sys.path)


def _exit(code: int) -> NoReturn:
    """End at once, whatever other threads do."""
    os._exit(code)


if __name__ == "__main__":
    main()
