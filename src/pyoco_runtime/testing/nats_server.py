"""A real nats-server for tests: on a free port of the loopback, to be killed and restarted at will."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from pyoco_runtime.nats_server import GRACE_SEC, NatsServer, ServerConfig, ServerProcess


@contextmanager
def nats_server(store_dir: Path, port: int = 0) -> Iterator[RunningServer]:
    """Run a server for a block, ready before it and gone after it; raises AddressInUse, StoreLocked, NatsServerDied."""
    server = RunningServer(NatsServer(ServerConfig(store_dir, port=port)))
    server.start()
    try:
        yield server
    finally:
        server.stop()


class RunningServer:
    """A server and the thread that reads its log; may be used from any thread, one at a time."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server
        self._process: ServerProcess | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients connect; a restart does not change it."""
        assert self._server.address is not None, "the server was never started"
        return self._server.address

    @property
    def pid(self) -> int:
        """The process of this life, or of the last one."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves; raises AddressInUse, StoreLocked, NatsServerDied."""
        assert self._thread is None, "the server is running"
        ready: Future[ServerProcess] = Future()
        # started and read by one thread, which so outlives the server: see NatsServer.spawned
        self._thread = threading.Thread(target=self._live, args=(ready,), name="nats-server", daemon=True)
        self._thread.start()
        try:
            self._process = ready.result()
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def kill(self) -> None:
        """Kill it as a crash would, with SIGKILL, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, kill it if it does not, and wait until it is gone."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Stop it if it runs, and start it again on the same port and store."""
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._process is not None:
            self._process.signal(number)
            thread.join(GRACE_SEC)
            self._process.signal(signal.SIGKILL)
        thread.join()

    def _live(self, ready: Future[ServerProcess]) -> None:
        try:
            with self._server.spawned() as process:
                while not process.ready:
                    if not process.read():
                        raise process.death()
                ready.set_result(process)
                while process.read():
                    pass
        except BaseException as error:  # handed to the thread that waits for it
            if ready.done():
                raise
            ready.set_exception(error)
