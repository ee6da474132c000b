"""The board of runs on a real nats-server: it agrees with KV, also after the server was restarted."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pyoco_runtime.actors.link import Link
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.ports import CaughtUp, RunChanged
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.names import NAMES

COUNT = 2000
PATIENCE_SEC = 40.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with nats_server(tmp_path / "store") as running:
        yield running


class Gateway:
    """A board with its actor, and a store to write to."""

    def __init__(self, link: NatsLink) -> None:
        self.link = link
        self.board = RunBoard()
        self.store = NatsRunStore(link, NAMES.runs_bucket, 262144)

    async def fill(self, numbers: range) -> None:
        """Store a run for each number, many at a time."""
        async with anyio.create_task_group() as group:
            for n in numbers:
                group.start_soon(self.store.create, run(n))

    async def stored(self) -> dict[str, int]:
        """What KV has, read by itself."""
        found: dict[str, int] = {}
        async with self.store.changes() as changes:
            while not isinstance(change := await changes.next(), CaughtUp):
                if isinstance(change, RunChanged):
                    found[change.stored.snapshot.run_id] = change.stored.revision
        return found

    def listed(self) -> dict[str, int]:
        """What the board has, page by page."""
        found: dict[str, int] = {}
        cursor: str | None = None
        while True:
            page = self.board.index.query(RunFilter(), 200, cursor)
            found |= {each.run_id: each.revision for each in page.runs}
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def current(self) -> None:
        """Wait until the board is up to date; nobody tells, so ask."""
        while self.board.behind is not None:  # noqa: ASYNC110 (nobody tells)
            await anyio.sleep(0.02)


def run(n: int, status: RunStatus = RunStatus.PENDING, **fields: Any) -> RunSnapshot:
    return RunSnapshot(run_id=f"r-{n:05}", flow_name=f"f-{n % 7}", status=status, updated_at=time.time(), **fields)


@asynccontextmanager
async def gateway(server: RunningServer) -> AsyncIterator[Gateway]:
    """The link and the run index, supervised."""
    link = NatsLink(lambda: (server.url,), "gateway", NAMES)
    made = Gateway(link)
    spec = SupervisorSpec(
        "root",
        (
            ActorSpec("link", lambda: Link(link)),
            ActorSpec("run-index", lambda: RunIndexer(made.board, made.store, link, time.time)),
        ),
    )
    with anyio.fail_after(PATIENCE_SEC):
        async with Supervisor(spec):
            await link.wait_up()
            yield made


def test_the_board_agrees_with_kv_before_and_after_a_restart_of_the_server(server: RunningServer) -> None:
    """Two thousand runs, stored before and while it listens; updates and removals; a server that goes and comes."""

    async def story() -> None:
        async with gateway(server) as it:
            await it.fill(range(COUNT // 2))
            await it.current()
            await it.fill(range(COUNT // 2, COUNT))
            latest = await it.store.update(run(3, RunStatus.COMPLETED), (await it.stored())["r-00003"])
            await it.board.heard_of(latest)
            assert it.listed() == await it.stored()
            assert it.board.tally.ended() == {("f-3", RunStatus.COMPLETED): 1}
            await restart(server, it)
            await it.current()
            stored = await it.stored()
            assert it.listed() == stored
            assert len(stored) == COUNT
            await it.store.remove("r-00005", stored["r-00005"])
            await it.board.heard_of(await it.store.update(run(6, RunStatus.FAILED), stored["r-00006"]))
            assert it.listed() == await it.stored()
            assert len(it.board.index) == COUNT - 1

    anyio.run(story)


async def restart(server: RunningServer, it: Gateway) -> None:
    """Stop the server, see that the board says so, and start it again."""
    down = anyio.Event()
    forget = it.link.on_change(down.set)
    await anyio.to_thread.run_sync(server.stop)
    await down.wait()
    forget()
    while it.board.behind is None:  # noqa: ASYNC110 (nobody tells)
        await anyio.sleep(0.01)
    assert len(it.board.index) == COUNT, "what was known is kept meanwhile"
    await anyio.to_thread.run_sync(server.start)
    await it.link.wait_up()


def test_the_end_of_a_run_reaches_who_follows_it_within_milliseconds(server: RunningServer) -> None:
    """And those who wait for others hear nothing."""

    async def story() -> None:
        async with gateway(server) as it:
            await it.fill(range(50))
            await it.current()
            revision = (await it.stored())["r-00007"]
            with it.board.following_run("r-00007") as one, it.board.following_run("r-00008") as other:
                began = time.perf_counter()
                await it.store.update(run(7, RunStatus.COMPLETED), revision)
                news = await one.next()
                took_sec = time.perf_counter() - began
                assert news.snapshot is not None
                assert news.snapshot.status is RunStatus.COMPLETED
                assert took_sec < 0.5  # some 2 ms; the machine may be busy
                with anyio.move_on_after(0.05) as scope:
                    await other.next()
                assert scope.cancelled_caught

    anyio.run(story)
