"""The http actor on real sockets, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from anyio.lowlevel import checkpoint
from attrs import define, field
from quart import Blueprint, Response

from pyoco_runtime.core import ActorSpec, Intensity, Supervisor, SupervisorSpec
from pyoco_runtime.errors import AddressInUse, UserError
from pyoco_runtime.gateway.app import create_app
from pyoco_runtime.gateway.closing import Closing
from pyoco_runtime.gateway.http import Http
from pyoco_runtime.gateway.listener import Listener

Run = Callable[[Callable[[], Awaitable[None]]], None]
CLOSE = {"connection": "close"}
SOON_SEC = 0.5  # a limit that no test that keeps it comes near to, on a busy machine too
GET_HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's main, and sees that it ends in time and leaves no task behind."""

    async def guarded(main: Callable[[], Awaitable[None]]) -> None:
        with anyio.fail_after(20):
            await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def start(main: Callable[[], Awaitable[None]]) -> None:
        anyio.run(guarded, main, backend_options={"use_uvloop": request.param == "uvloop"})

    return start


@define
class Site:
    """An app with slow and endless routes, and the tree that serves it."""

    listener: Listener
    missing_now: tuple[str, ...] = ()
    closing: Closing = field(factory=Closing)
    entered: anyio.Event = field(factory=anyio.Event)
    release: anyio.Event = field(factory=anyio.Event)
    left: anyio.Event = field(factory=anyio.Event)
    tree: Supervisor = field(init=False)

    def missing(self) -> tuple[str, ...]:
        return self.missing_now

    async def restart(self) -> None:
        await self.tree.restart("runtime/http")

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.listener.url, trust_env=False, timeout=20)

    async def connect(self) -> SocketStream:
        """A raw connection that the server has accepted: it accepts in order, and a later one was answered."""
        stream = await anyio.connect_tcp("127.0.0.1", self.listener.port)
        async with self.client() as client:
            assert (await client.get("/health")).status_code == 200
        return stream


def slow_routes(site: Site) -> Blueprint:
    """Routes that wait for the test."""
    routes = Blueprint("slow", __name__)

    @routes.get("/slow")
    async def slow() -> str:
        site.entered.set()
        try:
            await site.release.wait()
        finally:
            site.left.set()
        return "done"

    @routes.get("/sse")
    async def sse() -> Response:
        return Response(events(site), content_type="text/event-stream")

    @routes.get("/flood")
    async def flood() -> Response:
        return Response(noise(site), content_type="application/octet-stream")

    return routes


async def events(site: Site) -> AsyncIterator[bytes]:
    yield b"event: hello\n\n"
    try:
        with site.closing.until():
            site.entered.set()
            await anyio.sleep_forever()
        yield b"event: bye\n\n"
    finally:
        site.left.set()


async def noise(site: Site) -> AsyncIterator[bytes]:
    """More than any buffer holds."""
    site.entered.set()
    try:
        while True:
            yield b"x" * 1_000_000
            await checkpoint()  # Hypercorn's send does not suspend once the client is gone: this is where it ends
    finally:
        site.left.set()


@asynccontextmanager
async def serving(*, grace_sec: float = 15.0, **limits: Any) -> AsyncIterator[Site]:
    """The tree with an http actor on a free port."""
    site = Site(Listener("127.0.0.1", 0))
    app = create_app(site, [slow_routes(site)])
    spec = ActorSpec(
        "http", lambda: Http(app, site.listener, grace_sec, closing=site.closing, **limits), shutdown_sec=grace_sec + 5
    )
    try:
        async with Supervisor(SupervisorSpec("runtime", (spec,), intensity=Intensity(1000, 1.0))) as tree:
            site.tree = tree
            yield site
    finally:
        site.listener.close()


async def rest_of(stream: SocketStream) -> bytes:
    """Everything until the server closes."""
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return received


def test_readiness_follows_the_view(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Health stays 200; ready flips; nothing is printed."""

    async def main() -> None:
        async with serving() as site, site.client() as client:
            site.missing_now = ("nats: not connected",)
            assert (await client.get("/health")).json() == {"status": "ok"}
            answer = await client.get("/ready")
            assert (answer.status_code, answer.json()["detail"]) == (503, {"missing": ["nats: not connected"]})
            site.missing_now = ()
            assert (await client.get("/ready")).status_code == 200

    run(main)
    assert capfd.readouterr() == ("", "")


def test_a_restart_loses_no_request(run: Run) -> None:
    """Clients that connect anew for every request get every answer while the actor restarts thirty times."""
    answered: list[int] = []

    async def main() -> None:
        over = anyio.Event()

        async def insist(site: Site) -> None:
            async with site.client() as client:
                while not over.is_set():
                    answered.append((await client.get("/health", headers=CLOSE)).status_code)

        async with serving() as site, anyio.create_task_group() as clients:
            for _ in range(8):
                clients.start_soon(insist, site)
            for count in range(1, 31):
                await site.restart()
                while len(answered) < 10 * count:
                    await checkpoint()
            over.set()

    run(main)
    assert len(answered) >= 300
    assert set(answered) == {200}


def test_a_connection_accepted_just_before_the_stop_gets_its_answer(run: Run) -> None:
    """Its first request may be on the way."""

    async def main() -> None:
        async with serving() as site, await site.connect() as stream:
            site.tree.stop()
            await site.closing.wait()
            await stream.send(GET_HEALTH)
            assert b'{"status":"ok"}' in await rest_of(stream)

    run(main)


def test_a_request_while_the_actor_is_down_is_answered_by_the_next_life(run: Run) -> None:
    """The old life waits for a slow request; the new one answers who came meanwhile."""

    async def main() -> None:
        async with serving() as site, site.client() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, "/slow")
            await site.entered.wait()
            tasks.start_soon(site.restart)
            await site.closing.wait()
            async with await anyio.connect_tcp("127.0.0.1", site.listener.port) as stream:
                await stream.send(GET_HEALTH.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
                site.release.set()
                assert b'{"status":"ok"}' in await rest_of(stream)

    run(main)


def test_a_slow_request_is_answered_within_the_grace_time(run: Run) -> None:
    """Stopping waits for it."""

    async def main() -> None:
        answers: list[str] = []

        async def ask(client: httpx.AsyncClient) -> None:
            answers.append((await client.get("/slow")).text)

        async with serving() as site, site.client() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client)
            await site.entered.wait()
            site.tree.stop()
            await site.closing.wait()
            site.release.set()
        assert answers == ["done"]

    run(main)


@pytest.mark.parametrize("now", [False, True], ids=["asked", "cancelled"])
@pytest.mark.parametrize(
    "sent",
    [
        b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n" + GET_HEALTH,
        b"GET /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
        b"GET /flood HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=["slow", "pipelined", "half a body", "not reading"],
)
def test_what_outlives_the_grace_time_is_cut(run: Run, sent: bytes, now: bool) -> None:
    """Whatever the client does, its handler is cancelled, and the connection is closed."""

    async def main() -> None:
        async with serving(grace_sec=0.05) as site, await site.connect() as stream:
            await stream.send(sent)
            await site.entered.wait()
            if sent.startswith(b"GET /flood"):
                await anyio.wait_all_tasks_blocked()  # the handler waits for a client that does not read
            site.tree.stop(now=now)
            await site.left.wait()
            assert b"done" not in await rest_of(stream)

    run(main)


def test_http2_is_served_and_cut_too(run: Run) -> None:
    """A client with prior knowledge of HTTP/2 changes nothing of that."""

    async def main() -> None:
        async with serving(grace_sec=0.05) as site:
            client = httpx.AsyncClient(base_url=site.listener.url, trust_env=False, http1=False, http2=True, timeout=20)
            async with client, anyio.create_task_group() as tasks:
                assert (await client.get("/health")).http_version == "HTTP/2"

                async def ask() -> None:
                    with pytest.raises(httpx.TransportError):
                        await client.get("/slow")

                tasks.start_soon(ask)
                await site.entered.wait()
                site.tree.stop()
                await site.left.wait()

    run(main)


def test_a_stream_says_good_bye_when_the_actor_stops(run: Run) -> None:
    """It ends by itself, long before the grace time, and is whole."""

    async def main() -> None:
        received: list[str] = []

        async def watch(client: httpx.AsyncClient) -> None:
            async with client.stream("GET", "/sse") as answer:
                received.extend([line async for line in answer.aiter_lines() if line])

        async with serving(grace_sec=300) as site, site.client() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(watch, client)
            await site.entered.wait()
            site.tree.stop()
        assert received == ["event: hello", "event: bye"]
        assert site.left.is_set()

    run(main)


def test_a_stream_of_the_next_life_runs(run: Run) -> None:
    """The word to end does not outlive the life that it was meant for."""

    async def main() -> None:
        async with serving() as site, site.client() as client:
            await site.restart()
            async with client.stream("GET", "/sse") as answer:
                async for line in answer.aiter_lines():
                    assert line == "event: hello"
                    break
                await site.entered.wait()
                assert not site.left.is_set()
            await site.left.wait()  # a client that goes away ends its stream

    run(main)


def test_silent_connections_do_not_hold_up_the_stop(run: Run) -> None:
    """Neither one that has had its answer, nor one that never asked, nor one that sent half a head."""

    async def main() -> None:
        async with serving(grace_sec=300) as site, site.client() as client:
            await client.get("/health")
            async with await site.connect() as silent, await site.connect() as halting:
                await halting.send(b"GET /health HT")
                site.tree.stop()
                assert await rest_of(silent) == b""
                assert await rest_of(halting) == b""

    run(main)


def test_a_cancel_at_any_moment_leaves_nothing_behind(run: Run) -> None:
    """With a connection coming in, being set up, and being served."""

    async def main() -> None:
        for turns in range(40):
            with anyio.CancelScope() as scope:
                async with serving() as site, await anyio.connect_tcp("127.0.0.1", site.listener.port) as stream:
                    await stream.send(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
                    for _ in range(turns):
                        await checkpoint()
                    scope.cancel()
                    await checkpoint()
            assert site.entered.is_set() == site.left.is_set()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)


# -- clients that take too long, or too much --------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", GET_HEALTH], ids=["before its first request", "after a request"])
def test_an_idle_connection_is_closed_after_the_keep_alive_time(run: Run, sent: bytes) -> None:
    """Without a word."""

    async def main() -> None:
        async with (
            serving(keep_alive_sec=SOON_SEC) as site,
            await anyio.connect_tcp("127.0.0.1", site.listener.port) as one,
        ):
            await one.send(sent)
            received = await rest_of(one)
            assert received.count(b"HTTP/1.1") == (1 if sent else 0)

    run(main)


def test_a_connection_with_a_request_is_not_idle(run: Run) -> None:
    """However long the answer takes."""

    async def main() -> None:
        async with (
            serving(keep_alive_sec=SOON_SEC) as site,
            site.client() as client,
            anyio.create_task_group() as tasks,
        ):

            async def ask() -> None:
                assert (await client.get("/slow")).text == "done"

            tasks.start_soon(ask)
            await site.entered.wait()
            async with await anyio.connect_tcp("127.0.0.1", site.listener.port) as other:
                assert await rest_of(other) == b"", "it came later, and its time is over"
            site.release.set()

    run(main)


def test_half_a_head_is_answered_with_408(run: Run) -> None:
    """Bytes that come now and then do not help; what is said is JSON."""

    async def main() -> None:
        async with (
            serving(head_sec=SOON_SEC) as site,
            await anyio.connect_tcp("127.0.0.1", site.listener.port) as stream,
        ):

            async def dribble() -> None:
                try:
                    while True:
                        await stream.send(b"x")
                        await anyio.sleep(0.02)  # between two bytes of a slow client
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

            async with anyio.create_task_group() as tasks:
                await stream.send(GET_HEALTH + b"GET /hea")
                tasks.start_soon(dribble)
                received = await rest_of(stream)
                tasks.cancel_scope.cancel()
            assert received.startswith(b"HTTP/1.1 200")
            assert b"HTTP/1.1 408 Request Timeout" in received
            assert json.loads(received.rpartition(b"\r\n\r\n")[2])["err_id"] == "ERR-PYOCO-0002"

    run(main)


def test_an_idle_http2_connection_has_no_half_a_head(run: Run) -> None:
    """Its frames between requests are no request that has begun."""

    async def main() -> None:
        async with serving(head_sec=SOON_SEC) as site:
            client = httpx.AsyncClient(base_url=site.listener.url, trust_env=False, http1=False, http2=True, timeout=20)
            async with client, await anyio.connect_tcp("127.0.0.1", site.listener.port) as slow:
                await client.get("/health")
                await slow.send(b"GET /hea")
                assert b" 408 " in await rest_of(slow), "as much time has gone by"
                assert (await client.get("/health")).http_version == "HTTP/2"

    run(main)


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"GET /health HTTP/1.1\r\nx: " + b"y" * 3_000_000, 431), (b"hello\r\n\r\n", 400)],
    ids=["too long", "no head"],
)
def test_a_head_that_cannot_be_read_is_answered_in_json(run: Run, sent: bytes, status: int) -> None:
    """And the answer arrives, though the client is still sending."""

    async def main() -> None:
        async with serving() as site, await anyio.connect_tcp("127.0.0.1", site.listener.port) as stream:
            await stream.send(sent)
            head, _, body = (await rest_of(stream)).partition(b"\r\n\r\n")
            assert int(head.split()[1]) == status
            assert json.loads(body)["err_id"] == "ERR-PYOCO-0002"

    run(main)


def test_a_client_that_does_not_read_is_cut(run: Run) -> None:
    """Its handler ends too."""

    async def main() -> None:
        async with (
            serving(keep_alive_sec=SOON_SEC) as site,
            await anyio.connect_tcp("127.0.0.1", site.listener.port) as one,
        ):
            await one.send(b"GET /flood HTTP/1.1\r\nhost: x\r\n\r\n")
            await site.left.wait()

    run(main)


def test_who_goes_away_gives_its_place_back(run: Run) -> None:
    """While idle, in the middle of a request, and in the middle of an answer."""

    async def main() -> None:
        for sent in (
            b"",
            b"GET /hea",
            b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /sse HTTP/1.1\r\nhost: x\r\n\r\n",
        ):
            async with serving(max_connections=1) as site:
                async with await anyio.connect_tcp("127.0.0.1", site.listener.port) as stream:
                    await stream.send(sent)
                    if sent.endswith(b"\n"):
                        await site.entered.wait()
                async with site.client() as client:
                    while (await client.get("/health", headers=CLOSE)).status_code != 200:
                        await checkpoint()  # it has yet to notice

    run(main)


def test_the_one_that_is_idle_the_longest_makes_room(run: Run) -> None:
    """But not before it is sure that no request of its is on the way."""

    async def main() -> None:
        async with serving(max_connections=2) as site, site.client() as client:
            first = await anyio.connect_tcp("127.0.0.1", site.listener.port)
            second = await anyio.connect_tcp("127.0.0.1", site.listener.port)
            async with first, second:
                while (await client.get("/health", headers=CLOSE)).status_code == 503:
                    pass  # it is told to come later, until the first has had its second
                assert await rest_of(first) == b""
                await second.send(GET_HEALTH)
                assert (await second.receive()).startswith(b"HTTP/1.1 200")

    run(main)


def test_one_too_many_is_told_to_come_later(run: Run) -> None:
    """While all are busy the answer is 503, in words."""

    async def main() -> None:
        async with serving(max_connections=1) as site, site.client() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, "/slow")
            await site.entered.wait()
            answer = await client.get("/health", headers=CLOSE)
            assert (answer.status_code, answer.json()["err_id"]) == (503, "ERR-PYOCO-0041")
            assert answer.headers["retry-after"] == "1"
            site.release.set()

    run(main)


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    """The error names the address and the option."""
    taken = Listener("127.0.0.1", 0)
    try:
        with pytest.raises(AddressInUse, match=rf"127\.0\.0\.1:{taken.port} is in use.*--probe-port 0"):
            Listener("127.0.0.1", taken.port, option="--probe-port")
    finally:
        taken.close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    """A typing error in the host is not a crash."""
    with pytest.raises(UserError, match=f"cannot listen on {host}:0"):
        Listener(host, 0)


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("::1", "http://[::1]:")]
)
def test_the_url_can_be_dialled(host: str, url: str) -> None:
    """A wildcard is shown as loopback, and IPv6 in brackets."""
    listener = Listener(host, 0)
    try:
        assert listener.url == f"{url}{listener.port}"
    finally:
        listener.close()
