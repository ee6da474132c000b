"""Wheels over real HTTP into a real object store, by several gateways at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx
import nats
import pytest
from attrs import frozen
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from packaging.utils import parse_wheel_filename

from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.app import create_app
from pyoco_runtime.gateway.http import Http
from pyoco_runtime.gateway.listener import Listener
from pyoco_runtime.gateway.routes.wheels import wheel_routes
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.wheel_history import NatsWheelHistory
from pyoco_runtime.jetstream.wheel_store import NatsWheelStore
from pyoco_runtime.model.wheel_event import HistoryQuery, WheelAction, WheelEvent
from pyoco_runtime.ports import WheelLabel
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from pyoco_runtime.wheel_shop import WheelShop
from tests.names import NAMES

MAX_BYTES = 40_000_000
STREAM = "OBJ_pyoco_wheels"


class Ready:
    """A process that lacks nothing."""

    def missing(self) -> tuple[str, ...]:
        return ()


@frozen
class Gateway:
    """One gateway: its connection, its store, and a client of it."""

    link: NatsLink
    store: NatsWheelStore
    history: NatsWheelHistory
    client: httpx.AsyncClient
    port: int

    async def upload(self, name: str, data: bytes = b"bytes", **fields: str) -> httpx.Response:
        return await self.client.post("/wheels", files={"wheel": (name, data)}, data=fields)


@asynccontextmanager
async def gateway(url: str) -> AsyncIterator[Gateway]:
    """A gateway with the wheels and nothing else, on a connection of its own."""
    link = NatsLink(lambda: (url,), "gateway", NAMES)
    await link.connect()
    await link.prepare()
    link.declare_up()
    store = NatsWheelStore(link, NAMES.wheels_bucket, sweep_after_sec=0.0)
    history = NatsWheelHistory(link, NAMES.wheel_history_bucket)
    listener = Listener("127.0.0.1", 0)
    app = create_app(Ready(), [wheel_routes(WheelShop(store, history, time.time, max_bytes=MAX_BYTES))])
    spec = ActorSpec("http", lambda: Http(app, listener, 5.0), shutdown_sec=10)
    client = httpx.AsyncClient(base_url=listener.url, trust_env=False, timeout=20)
    try:
        async with Supervisor(SupervisorSpec("runtime", (spec,))), client:
            yield Gateway(link, store, history, client, listener.port)
    finally:
        listener.close()
        link.declare_down("the test is over")
        await link.close()


@asynccontextmanager
async def stranger(url: str) -> AsyncIterator[JetStreamContext]:
    """Any other client of the server."""
    client = await nats.connect(url)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def chunk_subjects(js: JetStreamContext) -> dict[str, int]:
    return (await js.stream_info(STREAM, subjects_filter="$O.pyoco_wheels.C.>")).state.subjects or {}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with nats_server(tmp_path / "store") as running:
        yield running


def play(main: Callable[[], Awaitable[None]]) -> None:
    async def guarded() -> None:
        with anyio.fail_after(40):
            await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    anyio.run(guarded)


def wheel(version: object, platform: str = "any") -> str:
    return f"demo-{version}-py3-none-{platform}.whl"


def test_of_many_uploads_of_a_version_one_wins(server: RunningServer) -> None:
    """By three gateways at once, under different names; the bytes of the others are gone, the history has one event."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            gateways = [await stack.enter_async_context(gateway(server.url)) for _ in range(3)]
            js = await stack.enter_async_context(stranger(server.url))
            for version in range(1, 6):
                answers: list[httpx.Response] = []

                async def upload(number: int, version: int = version, answers: list[httpx.Response] = answers) -> None:
                    data = bytes([number]) * 300_000
                    answers.append(await gateways[number % 3].upload(wheel(version, f"plat{number}"), data))

                async with anyio.create_task_group() as tasks:
                    for number in range(9):
                        tasks.start_soon(upload, number)
                assert sorted(answer.status_code for answer in answers) == [200] + [409] * 8
                lost = next(answer.json() for answer in answers if answer.status_code == 409)
                assert (lost["err_id"], lost["detail"].endswith(f"is {version}, this one is {version}")) == (
                    "ERR-PYOCO-0022",
                    True,
                )
                (won,) = [answer.json() for answer in answers if answer.status_code == 200]
                found = await (await js.object_store(NAMES.wheels_bucket)).get(won["name"])
                assert hashlib.sha256(found.data or b"").hexdigest() == won["sha256_hex"]
            assert len(await chunk_subjects(js)) == 5
            assert len(await gateways[0].history.recent(HistoryQuery())) == 5

    play(main)


def test_versions_only_ever_grow(server: RunningServer) -> None:
    """Whatever the order in which many versions arrive at several gateways; and other packages get through."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            gateways = [await stack.enter_async_context(gateway(server.url)) for _ in range(3)]
            js = await stack.enter_async_context(stranger(server.url))
            status: dict[str, int] = {}

            async def upload(number: int, name: str) -> None:
                status[name] = (await gateways[number % 3].upload(name)).status_code

            async with anyio.create_task_group() as tasks:
                for number in range(12):
                    tasks.start_soon(upload, number, wheel(number * 7 % 12))
                    tasks.start_soon(upload, number, f"other{number}-1-py3-none-any.whl")
            assert {status[f"other{number}-1-py3-none-any.whl"] for number in range(12)} == {200}
            order = []
            for seq in range(1, (await js.stream_info(STREAM)).state.last_seq + 1):
                try:
                    message = await js.get_msg(STREAM, seq=seq)
                except NotFoundError:
                    continue
                if (message.subject or "").startswith("$O.pyoco_wheels.M.") and b'"demo-' in (message.data or b""):
                    order.append(json.loads(message.data or b"")["name"])
            versions = [parse_wheel_filename(name)[1] for name in order]
            assert versions == sorted(versions)
            assert sorted(order) == sorted(name for name in status if name.startswith("demo") and status[name] == 200)
            assert wheel(11) in order

    play(main)


def test_a_large_wheel_goes_in_and_out(server: RunningServer) -> None:
    """Streamed both ways, more than Quart's own limit of 16 MB."""
    data = bytes(range(256)) * 130_000  # 33 MB

    async def main() -> None:
        async with gateway(server.url) as one:
            answer = await one.upload(wheel(1), data, tags="a,b")
            assert (answer.status_code, answer.json()["size_bytes"]) == (200, len(data))
            back = await one.client.get(f"/wheels/{wheel(1)}")
            assert hashlib.sha256(back.content).hexdigest() == answer.json()["sha256_hex"]

    play(main)


def test_a_wheel_that_is_too_large_is_refused(server: RunningServer) -> None:
    """The client gets to read the refusal although it has much left to send, and nothing stays."""

    async def main() -> None:
        async with gateway(server.url) as one, stranger(server.url) as js:
            answer = await one.upload(wheel(1), bytes(MAX_BYTES + 1))
            assert (answer.status_code, answer.json()["detail"][:15]) == (413, "wheel too large")
            answer = await one.upload(wheel(1), bytes(MAX_BYTES + 5_000_000))
            assert (answer.status_code, answer.json()["err_id"]) == (413, "ERR-PYOCO-0002")
            assert await chunk_subjects(js) == {}

    play(main)


HEAD = (
    b"POST /wheels HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=edge\r\n"
    b"content-length: 30000000\r\n\r\n"
    b'--edge\r\ncontent-disposition: form-data; name="wheel"; filename="demo-1-py3-none-any.whl"\r\n\r\n'
)


def test_a_client_that_goes_away_leaves_nothing(server: RunningServer) -> None:
    """In the middle of its file."""

    async def main() -> None:
        async with gateway(server.url) as one, stranger(server.url) as js:
            async with await anyio.connect_tcp("127.0.0.1", one.port) as stream:
                await stream.send(HEAD + bytes(1_000_000))
                while not await chunk_subjects(js):  # noqa: ASYNC110 (the server tells nobody)
                    await anyio.sleep(0.01)
            while await chunk_subjects(js):  # noqa: ASYNC110 (the server tells nobody)
                await anyio.sleep(0.01)
            assert await one.store.list() == []

    play(main)


def test_a_store_that_stands_still_stops_the_client(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than some buffers full is taken in; the file does not pile up in memory."""
    stuck = anyio.Event()

    async def wait(*_: object) -> None:
        await stuck.wait()

    async def main() -> None:
        async with gateway(server.url) as one:
            monkeypatch.setattr("pyoco_runtime.jetstream.object_bucket.ObjectBucket.add_chunk", wait)
            sent = 0
            async with await anyio.connect_tcp("127.0.0.1", one.port) as stream:
                await stream.send(HEAD)
                with anyio.move_on_after(2) as scope:
                    while sent < 30_000_000 - len(HEAD):
                        await stream.send(bytes(65_536))
                        sent += 65_536
                assert scope.cancelled_caught
                monkeypatch.undo()
            assert sent < 12_000_000  # the buffers of the kernel, mostly

    play(main)


def test_what_a_dead_server_leaves_is_swept(server: RunningServer) -> None:
    """The upload fails with what the gateway answers 503 to; the next one clears the rest away."""

    async def main() -> None:
        async with gateway(server.url) as one:
            try:
                async with one.store.uploading() as upload:
                    await upload.write(bytes(300_000))
                    one.link.declare_down("cut by the test")
                    await upload.commit(WheelLabel(name=wheel(1)), 0)
            except NatsUnavailable:
                pass
            one.link.declare_up()
            async with stranger(server.url) as js:
                assert len(await chunk_subjects(js)) == 1
                assert (await one.upload(wheel(1))).status_code == 200
                assert len(await chunk_subjects(js)) == 1
                assert (await one.client.get(f"/wheels/{wheel(1)}")).content == b"bytes"

    play(main)


def test_a_damaged_wheel_is_not_passed_off_as_whole(server: RunningServer) -> None:
    """The client sees that the end is missing."""

    async def main() -> None:
        async with gateway(server.url) as one, stranger(server.url) as js:
            answer = await one.upload(wheel(1), bytes(300_000))
            subject = f"$O.pyoco_wheels.C.{answer.json()['nuid']}"
            message = await js.get_msg(STREAM, seq=1, subject=subject, next=True)
            assert message.seq is not None
            await js.delete_msg(STREAM, message.seq)
            await js.publish(subject, b"x" * 131_072)
            with pytest.raises(httpx.RemoteProtocolError):
                await one.client.get(f"/wheels/{wheel(1)}")

    play(main)


def test_ten_thousand_events_are_read_in_one_go(server: RunningServer) -> None:
    """Not value by value."""

    async def main() -> None:
        async with gateway(server.url) as one:
            async with anyio.create_task_group() as tasks:
                for number in range(10_000):
                    event = WheelEvent(
                        event_id=f"{number:05d}", occurred_at=float(number), action=WheelAction.UPLOAD, wheel_name="x"
                    )
                    tasks.start_soon(one.history.append, event)
            began = time.perf_counter()
            found = (await one.client.get("/wheels/history?limit=500")).json()
            print(f"10,000 events: {time.perf_counter() - began:.3f} s")
            assert [event["occurred_at"] for event in found] == [float(number) for number in range(9999, 9499, -1)]

    play(main)
