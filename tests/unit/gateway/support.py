"""A gateway's world for tests of its routes: memory ports, its indexers at work, and a client without a socket."""

from __future__ import annotations

import functools
import inspect
import json
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.abc
from anyio.lowlevel import checkpoint
from attrs import evolve, field, frozen

from pyoco_runtime.actors.key_cache import KeyCache
from pyoco_runtime.actors.letter_index import LetterIndexer
from pyoco_runtime.actors.queue_sampler import QueueSampler
from pyoco_runtime.actors.run_index import RunIndexer
from pyoco_runtime.actors.worker_index import WorkerIndexer
from pyoco_runtime.bells import Bell, Bells
from pyoco_runtime.core import Actor, ActorSpec, Event, Exited, Supervisor, SupervisorSpec
from pyoco_runtime.engine.flow_yaml import check_flow_yaml
from pyoco_runtime.errors import NatsUnavailable, NoSuchActor
from pyoco_runtime.gateway.app import create_gateway
from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.traffic import Traffic
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.letter_board import LetterBoard
from pyoco_runtime.model.api_key import Principal, new_key
from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.house import ActorReport, CrashReport, ProcessReport
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.wire import job_from, key_to, letter_to, snapshot_to
from pyoco_runtime.model.worker import WorkerRecord, WorkerState
from pyoco_runtime.ports import Link
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.submitter import Submitter
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from pyoco_runtime.testing.virtual_time import run_virtual
from pyoco_runtime.wheel_shop import WheelShop
from pyoco_runtime.worker_board import WorkerBoard

A_DAY_SEC = 86400.0
MAX_BYTES = 262144
YAML_MAX_BYTES = 20_000
AsyncTest = Callable[..., Awaitable[None]]
Asgi = Callable[..., Awaitable[None]]


def on_asyncio(test: AsyncTest) -> Callable[..., None]:
    """Run an async test on asyncio, where Quart is at home, in virtual time."""

    @functools.wraps(test)
    def sync(**fixtures: object) -> None:
        async def bounded() -> None:
            with anyio.fail_after(A_DAY_SEC):  # a test in which everybody waits for ever fails instead of hanging
                await test(**fixtures)

        run_virtual(bounded, backend="asyncio")

    sync.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]  # what pytest reads
    del sync.__dict__["__wrapped__"]
    return sync


# -- the client -------------------------------------------------------------------------------------------------------


@frozen
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        """The body, which must be JSON."""
        assert self.headers["content-type"] == "application/json", self
        return json.loads(self.data, parse_constant=_no_constant)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.data.decode()

    @property
    def err_id(self) -> str:
        """The id of the error; every error has the three fields of the contract."""
        body = self.json
        assert set(body) >= {"detail", "err_id", "msg_id"}, body
        assert body["msg_id"] == body["err_id"].replace("ERR", "MSG")
        return str(body["err_id"])


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


@frozen
class Sent:
    """One server-sent event."""

    name: str
    data: Any
    id: int | None


class Stream:
    """An answer that comes in pieces, read event by event."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._sender, self._receiver = anyio.create_memory_object_stream[bytes](math.inf)
        self._begun = anyio.Event()
        self._buffer = b""
        self._open = anyio.Event()
        self._open.set()

    def hold(self) -> None:
        """Read nothing more from the socket: whoever sends has to wait."""
        self._open = anyio.Event()

    def let_go(self) -> None:
        """Read on."""
        self._open.set()

    async def begun(self) -> None:
        """Return when the status is there."""
        await self._begun.wait()

    async def next(self) -> Sent:
        """The next event. Raises anyio.EndOfStream."""
        while b"\n\n" not in self._buffer:
            self._buffer += await self._receiver.receive()
        raw, _, self._buffer = self._buffer.partition(b"\n\n")
        lines = dict(line.split(": ", 1) for line in raw.decode().splitlines())
        event_id = lines.get("id")
        return Sent(lines["event"], json.loads(lines["data"]), None if event_id is None else int(event_id))

    async def rest(self) -> list[Sent]:
        """All events until the stream ends."""
        found = []
        while True:
            try:
                found.append(await self.next())
            except anyio.EndOfStream:
                assert not self._buffer, "an event was cut off"
                return found

    async def body(self) -> bytes:
        """Everything, as it is."""
        return b"".join([piece async for piece in self._receiver])

    async def send(self, message: Mapping[str, Any]) -> None:
        """ASGI's side of it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for name, value in message["headers"]:
                self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")
            self._begun.set()
        elif message["type"] == "http.response.body" and message.get("body"):
            await self._open.wait()
            await self._sender.send(message["body"])

    def close(self) -> None:
        """Nothing more comes."""
        self._sender.close()
        self._begun.set()

    def forget(self) -> None:
        """Nobody reads any more."""
        self._receiver.close()


@frozen
class Client:
    """Asks an ASGI app; `headers` go with every request."""

    app: Asgi
    headers: Mapping[str, str] = field(factory=dict)

    def with_headers(self, **headers: str) -> Client:
        """The same with more headers; `_` stands for `-`."""
        return evolve(self, headers={**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}})

    async def get(self, path: str) -> Answer:
        return await self.ask("GET", path)

    async def post(self, path: str, body: object = None) -> Answer:
        """POST with a JSON body, or none."""
        return await self.ask("POST", path, b"" if body is None else json.dumps(body).encode())

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """One request and its whole answer."""
        async with self.watch(path, method, body) as stream:
            data = await stream.body()
            return Answer(stream.status, stream.headers, data)

    @asynccontextmanager
    async def watch(self, path: str, method: str = "GET", body: bytes = b"") -> AsyncIterator[Stream]:
        """One request and its answer piece by piece; the client goes away at the end of the block."""
        stream = Stream()
        pieces = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not pieces:
                await anyio.sleep_forever()
            return pieces.pop()

        async def serve() -> None:
            try:
                await self.app(_scope(method, path, self.headers), receive, stream.send)
            finally:
                stream.close()

        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            try:
                await stream.begun()
                yield stream
            finally:
                group.cancel_scope.cancel()
                stream.forget()


def _scope(method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    bare, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(bare),
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost")] + [(n.lower().encode(), v.encode("latin-1")) for n, v in headers.items()],
        "client": ("127.0.0.1", 4321),
        "server": ("127.0.0.1", 8000),
        "extensions": {},
        "state": {},
    }


# -- what is around the gateway ---------------------------------------------------------------------------------------


class FakeHouse:
    """Implements ports.HouseView: one process with one actor that has crashed, and those that a test adds."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.restarted: list[tuple[str, str]] = []
        self.trees = [own_report()]
        self.looks = 0
        self._bells = Bells()
        link.on_change(self._bells.ring)

    def change(self, *trees: ProcessReport) -> None:
        """From now on it looks like this, and whoever watches is told so."""
        self.trees = list(trees)
        self._bells.ring()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[FakeHouseWatch]:
        self._check()
        with self._bells.following() as bell:
            yield FakeHouseWatch(bell, self._check)

    async def reports(self) -> list[ProcessReport]:
        self._check()
        self.looks += 1
        return self.trees

    async def restart(self, process: str, actor: str) -> str:
        self._check()
        if actor.rpartition("/")[2] != "http":
            raise NoSuchActor(f"{process} has no actor {actor!r}")
        self.restarted.append((process, actor))
        return "runtime/gateway/http"

    def _check(self) -> None:
        if not self._link.is_up:
            raise NatsUnavailable(self._link.problem)


@frozen
class FakeHouseWatch:
    """Implements ports.HouseWatch."""

    bell: Bell
    check: Callable[[], None]

    async def changed(self) -> None:
        await self.bell.next()
        self.check()


def own_report() -> ProcessReport:
    """The tree of this process."""
    crash = CrashReport("ValueError", "a secret of somebody", "x.py:1", 5.0)
    http = ActorReport("runtime/gateway/http", "http", False, "running", 1.0, 3, crash, 7)
    run = ActorReport("runtime/worker/runs/run:1", "run:1", False, "running", 1.0)
    return ProcessReport(
        "p-1", "all", "host", 1, "0", 0.0, ActorReport("runtime", "runtime", True, "running", 1.0, children=(http, run))
    )


class Health:
    """A health view that a test can change."""

    def __init__(self) -> None:
        self.lacks: tuple[str, ...] = ()

    def missing(self) -> tuple[str, ...]:
        return self.lacks


class Office:
    """A server, a gateway's process on it, and all that its actors share."""

    def __init__(self, *, auth: bool = False, max_runs: int = 10_000, connected: bool = True) -> None:
        self.server = MemoryJetStream()
        self.faults = self.server.faults
        self.process = self.server.process("gateway", connected=connected)
        self.house = FakeHouse(self.process.link)
        self.health = Health()
        self.ring = KeyRing(self.process.keys, None, _hash_here) if auth else None
        self.events: list[Event] = []
        self.parts = self._made(max_runs)
        self.app: Asgi = create_gateway(self.parts)
        self.client = Client(self.app)

    def _made(self, max_runs: int) -> GatewayParts:
        process, clock = self.process, virtual_clock
        return GatewayParts(
            health=self.health,
            gate=Gate(self.ring, "X-API-Key"),
            closing=Closing(),
            clock=clock,
            link=process.link,
            submitter=Submitter(process.run_store, process.work_queue, process.promises, clock),
            keeper=RunKeeper(process.run_store, clock),
            runs=RunBoard(max_runs, clock),
            workers=WorkerBoard(),
            letters=LetterBoard(),
            registry=process.registry,
            dead_letters=process.dead_letters,
            gauge=process.gauge,
            house=self.house,
            own_report=own_report,
            shop=WheelShop(process.wheels, process.wheel_history, clock, max_bytes=1_000_000),
            check_flow=check_flow_yaml,
            traffic=Traffic(),
            default_tag="default",
            workflow_yaml_max_bytes=YAML_MAX_BYTES,
            disconnect_timeout_sec=20.0,
        )

    @asynccontextmanager
    async def open(self, *, indexing: bool = True) -> AsyncIterator[Office]:
        """Run its actors; a crash of one fails the test."""
        tree = Supervisor(SupervisorSpec("office", tuple(self._actors() if indexing else ())))
        tree.feed.listen(self.events.append)
        async with tree:
            if indexing and self.process.link.is_up:
                await self.caught_up()
            yield self
        crashed = [event for event in self.events if isinstance(event, Exited) and event.crash is not None]
        assert not crashed, crashed

    def _actors(self) -> list[ActorSpec]:
        process, parts, clock = self.process, self.parts, virtual_clock
        made: dict[str, Callable[[], Actor]] = {
            "runs": lambda: RunIndexer(parts.runs, process.run_store, process.link, clock),
            "workers": lambda: WorkerIndexer(parts.workers, process.registry, process.link, clock),
            "queue": lambda: QueueSampler(process.gauge, parts.queue_minutes, process.link, clock),
            "letters": lambda: LetterIndexer(parts.letters, process.dead_letters, process.link, clock),
        }
        ring = self.ring
        if ring is not None:
            made["keys"] = lambda: KeyCache(ring, process.keys, process.link)
        return [ActorSpec(name, make) for name, make in made.items()]

    async def caught_up(self) -> None:
        """Return when the indexes know all that is stored."""
        parts = self.parts
        with anyio.fail_after(60):
            while parts.runs.behind or parts.workers.behind or parts.letters.behind:  # noqa: ASYNC110 - virtual time
                await anyio.sleep(0.01)
            stored = max((entry.revision for entry in self.server.runs.bucket.entries()), default=0)
            await parts.runs.heard_of(stored)
            for _ in range(20 + 8 * len(self.server.letters.messages) + 8 * len(self.server.workers.entries())):
                await checkpoint()

    def key(self, tenant: str, *, admin: bool = False) -> tuple[str, Client]:
        """A new API key of a tenant: its id, and a client that uses it."""
        key, record = new_key(tenant, now=1.0, pepper=None, randomness=secrets.token_bytes, admin=admin, iterations=1)
        self.server.keys.write(record.key_id, key_to(record), None)
        return key.key_id, self.client.with_headers(X_API_Key=key.plain())

    # -- what others do ------------------------------------------------------------------------------------------------

    def write(self, run_id: str = "r-1", status: RunStatus = RunStatus.RUNNING, **fields: Any) -> int:
        """Store a snapshot as another process does; returns its revision."""
        values: dict[str, Any] = {"flow_name": "f", "tag": "default", "updated_at": virtual_clock(), **fields}
        snapshot = RunSnapshot(run_id=run_id, status=status, **values)
        return self.server.write_run(run_id, snapshot_to(snapshot, MAX_BYTES)[0])

    def remove(self, run_id: str) -> None:
        """Delete a snapshot as another process does."""
        self.server.runs.bucket.write(run_id, None, None)

    def work(self, worker_id: str = "w-1", state: WorkerState = WorkerState.IDLE, **fields: Any) -> None:
        """Store a worker record as its worker does."""
        now = virtual_clock()
        values: dict[str, Any] = {"last_seen_at": now, "last_heartbeat_at": now, "updated_at": now, **fields}
        self.server.write_worker(WorkerRecord(worker_id=worker_id, instance_id="i", state=state, **values))

    def bury(self, reason: Reason = Reason.EXECUTION_ERROR, **fields: Any) -> int:
        """Store a dead letter as a worker does; returns its number."""
        values: dict[str, Any] = {"timestamp": virtual_clock(), "error": "bad", "run_id": "r-1", **fields}
        return self.server.write_letter(letter_to(DeadLetter(reason=reason, **values)))

    # -- what is stored ------------------------------------------------------------------------------------------------

    def run(self, run_id: str) -> RunSnapshot:
        """The snapshot that is stored."""
        found = self.server.snapshot(run_id)
        assert found is not None
        return found.snapshot

    def stored(self) -> list[str]:
        """The ids of all runs."""
        return [entry.key for entry in self.server.runs.bucket.entries() if entry.value is not None]

    def jobs(self) -> list[Job]:
        """All jobs on the queue."""
        found = [job_from(message.data) for message in self.server.work.messages.values()]
        assert not [each for each in found if isinstance(each, InvalidJob)]
        return [each for each in found if isinstance(each, Job)]


async def _hash_here(work: Callable[[], Principal | None], lane: str) -> Principal | None:
    """Virtual time does not see threads; with one iteration it costs nothing."""
    return work() if lane else None
