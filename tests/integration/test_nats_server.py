"""The embedded nats-server, with the real binary: it starts, stays, dies with us and has its store to itself."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import nats
import pytest

from pyoco_runtime.actors.nats import Nats
from pyoco_runtime.core import ActorSpec, Backoff, Event, Exited, Ready, Supervisor, SupervisorSpec
from pyoco_runtime.errors import AddressInUse, NatsServerDied, StoreLocked, UserError
from pyoco_runtime.nats_server import NatsServer, ServerConfig, check_free, find_binary, parse
from pyoco_runtime.testing.nats_server import nats_server

BACKENDS: dict[str, dict[str, Any]] = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}
Run = Callable[[Callable[[], Awaitable[None]]], None]

PARENT = """
import anyio, sys
from pathlib import Path
from pyoco_runtime.nats_server import NatsServer, ServerConfig

async def main():
    server = NatsServer(ServerConfig(Path(sys.argv[1]), port=0))
    async with server.running() as process:
        print(process.pid, server.address, flush=True)
        await process.wait()

anyio.run(main)
"""


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run an async test on each backend, and not longer than 20 seconds."""

    def run(test: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            with anyio.fail_after(20):
                await test()

        anyio.run(limited, **BACKENDS[request.param])

    return run


def server_in(store: Path, port: int = 0) -> NatsServer:
    return NatsServer(ServerConfig(store, port=port))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def add_stream(url: str) -> None:
    async def add() -> None:
        connection = await nats.connect(url)
        await connection.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
        await connection.jetstream().publish("kept.one", b"1")
        await connection.close()

    asyncio.run(add())


def kept_messages(url: str) -> int:
    async def count() -> int:
        connection = await nats.connect(url)
        info = await connection.jetstream().stream_info("KEPT")
        await connection.close()
        return info.state.messages

    return asyncio.run(count())


@contextmanager
def taken_port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def test_it_says_its_address_and_is_gone_after_the_block(run: Run, tmp_path: Path) -> None:
    """A server on any free port knows its URL once it runs, and leaves no process behind."""

    async def test() -> None:
        server = server_in(tmp_path)
        before = server.address
        async with server.running() as process:
            port = int(str(server.address).removeprefix("nats://127.0.0.1:"))
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                assert client.recv(4) == b"INFO"
        assert before is None
        assert await process.wait() == 0, "it ended by itself, not by SIGKILL"
        assert is_gone(process.pid)

    run(test)


def test_a_cancelled_block_leaves_no_process(run: Run, tmp_path: Path) -> None:
    """A cancellation, at any moment of the start, ends the server and frees the store."""

    async def test() -> None:
        pids: list[int] = []
        for deadline_sec in (0.0, 0.005, 0.02, 0.2):
            with anyio.move_on_after(deadline_sec):
                async with server_in(tmp_path).launched() as process:
                    pids.append(process.pid)
                    await process.until_ready()
                    await process.wait()
        assert all(map(is_gone, pids))
        check_free(ServerConfig(tmp_path, port=0))

    run(test)


def test_a_server_that_does_not_end_is_killed(run: Run, tmp_path: Path) -> None:
    """A stopped process ignores SIGTERM; after the grace time it is killed."""

    async def test() -> None:
        async with server_in(tmp_path).running(grace_sec=0.1) as process:
            process.signal(signal.SIGSTOP)
        assert await process.wait() == -signal.SIGKILL
        assert is_gone(process.pid)

    run(test)


def test_a_store_has_one_server(run: Run, tmp_path: Path) -> None:
    """The second one is refused with the pid of the first and the setting to change, and the first goes on."""

    async def test() -> None:
        async with server_in(tmp_path).running() as process:
            with pytest.raises(StoreLocked) as refused:
                async with server_in(tmp_path).running():
                    pass
            with pytest.raises(StoreLocked):
                check_free(ServerConfig(tmp_path, port=0))
            for word in (str(tmp_path), f"pid {process.pid}:", "PYOCO_NATS_STORE_DIR"):
                assert word in str(refused.value)
            assert not is_gone(process.pid)
        check_free(ServerConfig(tmp_path, port=0))

    run(test)


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """The message names the address and both ways out; no store is made."""
    with taken_port() as port:
        with pytest.raises(AddressInUse) as refused:
            check_free(ServerConfig(tmp_path / "store", port=port))
        with pytest.raises(AddressInUse), server_in(tmp_path / "store", port).spawned():
            pass
    for word in (f"127.0.0.1:{port} ", f"--nats-url nats://127.0.0.1:{port}", "PYOCO_NATS_CLIENT_PORT=0"):
        assert word in str(refused.value)
    assert not (tmp_path / "store").exists()


def test_what_the_user_can_mend_is_said(tmp_path: Path) -> None:
    """A store that is a file and a host that is not ours are user errors with the setting to change."""
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="PYOCO_NATS_STORE_DIR"), server_in(tmp_path / "file").spawned():
        pass
    with pytest.raises(UserError, match="PYOCO_NATS_LISTEN_HOST"):
        check_free(ServerConfig(tmp_path, host="192.0.2.1"))


def test_a_server_that_does_not_come_up_says_why(run: Run, tmp_path: Path) -> None:
    """The fatal line of its log is in the error."""
    (tmp_path / "jetstream").write_text("a file where the server wants a directory")

    async def test() -> None:
        with pytest.raises(NatsServerDied, match=r"ended with exit code 1; the last it said: Can't start JetStream"):
            async with server_in(tmp_path).running():
                pass
        check_free(ServerConfig(tmp_path, port=0))

    run(test)


def test_a_binary_that_is_none_says_so(run: Run, tmp_path: Path) -> None:
    """A launcher that cannot become the server ends with its reason."""

    async def test() -> None:
        server = NatsServer(ServerConfig(tmp_path, port=0, binary=tmp_path / "missing"))
        with pytest.raises(NatsServerDied, match="No such file or directory"):
            async with server.running():
                pass

    run(test)


class Watched:
    """A supervised server, and what happened to it."""

    def __init__(self, server: NatsServer) -> None:
        self.addresses: list[str] = []
        self.events: list[Event] = []
        self.again = anyio.Event()
        actor = ActorSpec(
            "nats", lambda: Nats(server, self.addresses.append), backoff=Backoff(0.01, 1.0, 0.01, 0.0), shutdown_sec=10
        )
        self.tree = Supervisor(SupervisorSpec("root", (actor,)))
        self.tree.feed.listen(self._note)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Ready) and event.life > 1:
            self.again.set()

    @property
    def crashes(self) -> list[str]:
        return [event.crash.message for event in self.events if isinstance(event, Exited) and event.crash is not None]


def pid_of(store: Path) -> int:
    return int((store / "pyoco.lock").read_text())


def test_a_killed_server_comes_back_on_its_port_with_its_store(run: Run, tmp_path: Path) -> None:
    """Whoever holds the URL finds the same streams there after a kill -9."""

    async def test() -> None:
        watched = Watched(server_in(tmp_path))
        async with watched.tree:
            first = pid_of(tmp_path)
            await anyio.to_thread.run_sync(add_stream, watched.addresses[0])
            os.kill(first, signal.SIGKILL)
            await watched.again.wait()
            assert watched.addresses[0] == watched.addresses[1]
            assert await anyio.to_thread.run_sync(kept_messages, watched.addresses[1]) == 1
            second = pid_of(tmp_path)
        assert len(watched.crashes) == 1
        assert f"nats-server (pid {first}) was killed by SIGKILL" in watched.crashes[0]
        assert is_gone(first)
        assert is_gone(second)

    run(test)


def test_an_asked_stop_is_clean_and_a_restart_is_no_crash(run: Run, tmp_path: Path) -> None:
    """Stopped by its supervisor the server stores all and ends, well within its time."""

    async def test() -> None:
        watched = Watched(server_in(tmp_path))
        async with watched.tree:
            first = pid_of(tmp_path)
            await watched.tree.restart("root/nats")
            second = pid_of(tmp_path)
        assert first != second
        assert is_gone(first)
        assert is_gone(second)
        assert watched.crashes == []

    run(test)


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """After a kill -9 of the parent the server ends by itself, cleanly, and the store is free and complete."""
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, url = parent.stdout.readline().split()
        add_stream(url)
        server = os.pidfd_open(int(pid))
        parent.kill()
    poll = select.poll()
    poll.register(server, select.POLLIN)
    ended = poll.poll(10_000)
    os.close(server)
    assert ended, "the server outlived its parent by ten seconds"
    assert list(tmp_path.glob("jetstream/*/streams/KEPT/msgs/index.db")), "written at a clean end only"
    with nats_server(tmp_path) as again:
        assert kept_messages(again.url) == 1


def test_its_log_reaches_our_logging(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Level and text arrive, the picture of the banner does not."""

    async def test() -> None:
        async with server_in(tmp_path).running():
            pass

    with caplog.at_level(logging.DEBUG, logger="nats-server"):
        run(test)
    lines = [record.getMessage() for record in caplog.records if record.name == "nats-server"]
    assert "Server is ready" in lines
    assert lines[-1] == "Server Exiting..", "read to the end"
    assert not [line for line in lines if "| |" in line or "---" in line or not line]


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("[1] 2026/11/18 06:55:47.215849 [INF]   Version:  2.15.1", (logging.INFO, "Version:  2.15.1")),
        ("[77] 2026/11/18 06:55:47.215849 [DBG] seen", (logging.DEBUG, "seen")),
        ("[77] 2026/11/18 06:55:47.215849 [WRN] slow", (logging.WARNING, "slow")),
        ("[77] 2026/11/18 06:55:47.215849 [ERR] full", (logging.ERROR, "full")),
        ("[77] 2026/11/18 06:55:47.215849 [FTL] over", (logging.CRITICAL, "over")),
        ("[77] 2026/11/18 06:55:47.215849 [INF] ", (logging.INFO, "")),
        ("panic: out of luck", (logging.ERROR, "panic: out of luck")),
    ],
)
def test_a_log_line_is_parsed(line: str, record: tuple[int, str]) -> None:
    """Every level has its own; what is no log line is an error."""
    assert parse(line) == record


def test_the_binary_of_the_package_is_found() -> None:
    """It is a file that can be run."""
    assert os.access(find_binary(), os.X_OK)


def test_the_test_tool_kills_and_restarts_on_the_same_port_and_store(tmp_path: Path) -> None:
    """Also from a thread that ends right after: the server does not take that for its parent's death."""
    with nats_server(tmp_path) as server:
        url, first = server.url, server.pid
        add_stream(url)
        server.kill()
        assert is_gone(first)
        helper = threading.Thread(target=server.restart)
        helper.start()
        helper.join()
        assert server.url == url
        assert kept_messages(url) == 1
        server.restart()
        assert kept_messages(url) == 1
        last = server.pid
    assert is_gone(last)


def test_the_test_tool_raises_what_kept_the_server_from_starting(tmp_path: Path) -> None:
    """The error of the thread inside reaches the caller, and the first server is not harmed."""
    with nats_server(tmp_path) as server:
        with pytest.raises(StoreLocked, match=f"pid {server.pid}:"), nats_server(tmp_path):
            pass
        assert not is_gone(server.pid)
