"""Both clients against scripted gateways: what is sent, what is sent again, and how a watch goes on."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from pyoco_runtime.client import (
    AsyncPyocoHttpClient,
    GatewayRefused,
    GatewayUnreachable,
    Heartbeat,
    Interrupted,
    InvalidArgument,
    ListDropped,
    NotAGateway,
    PyocoHttpClient,
    RunChanged,
    RunListed,
    WaitTimeout,
)

URL = "http://gateway.test:8000"
OURS = {"paths": {"/runs": {"post": {"parameters": [{"name": "Idempotency-Key", "in": "header"}]}}}}
PEERS: dict[str, Any] = {"paths": {"/runs": {"post": {}}}}
ACCEPTED = {"run_id": "r1", "status": "PENDING"}

Reply = httpx.Response | Exception


class Script:
    """A gateway that answers what it was told to, one after the other, and keeps what it was asked."""

    def __init__(self, *replies: Reply, document: Any = None) -> None:
        self.replies = list(replies)
        self.document = document
        self.asked: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/openapi.json":
            return httpx.Response(403) if self.document is None else httpx.Response(200, json=self.document)
        request.read()
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def client(self, **more: Any) -> PyocoHttpClient:
        return PyocoHttpClient(URL, transport=httpx.MockTransport(self), sleep=self.slept.append, **more)


def ok(value: Any) -> httpx.Response:
    return httpx.Response(200, json=value)


def stream(*parts: str) -> httpx.Response:
    return httpx.Response(200, content="".join(parts).encode(), headers={"content-type": "text/event-stream"})


def snapshot(status: str, event_id: int | None = None, **more: Any) -> str:
    data = {"run_id": "r1", "snapshot": {"run_id": "r1", "flow_name": "f", "status": status, **more}, "ts": 1.0}
    return (f"id: {event_id}\n" if event_id else "") + f"event: snapshot\ndata: {json.dumps(data)}\n\n"


def statuses(events: Iterator[Any]) -> list[str]:
    return [event.status for event in events if isinstance(event, RunChanged)]


LOST = httpx.RemoteProtocolError("gone")
UNSENT = httpx.ConnectError("refused")


# -- the two surfaces -------------------------------------------------------------------------------------------------


def surface(client: type) -> dict[str, list[tuple[str, object, object]]]:
    found: dict[str, list[tuple[str, object, object]]] = {}
    for name, method in inspect.getmembers(client, inspect.isfunction):
        if not name.startswith("_"):
            parameters = inspect.signature(method).parameters.values()
            found[name] = [(each.name, each.kind, each.default) for each in parameters]
    return found


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    """What one client can, the other can too, in the same words."""
    assert surface(PyocoHttpClient) == surface(AsyncPyocoHttpClient)


def test_both_clients_answer_with_the_same_types() -> None:
    """Only the iterators differ."""
    for name in surface(PyocoHttpClient):
        sync = str(inspect.signature(getattr(PyocoHttpClient, name)).return_annotation)
        other = str(inspect.signature(getattr(AsyncPyocoHttpClient, name)).return_annotation)
        assert sync.replace(", None, None]", ", None]") == other.replace("AsyncGenerator", "Generator")


# -- what is sent -----------------------------------------------------------------------------------------------------


def test_a_run_is_submitted_with_the_key_and_a_promise_key() -> None:
    """The body is the published one; the API key and an Idempotency-Key go along."""
    script = Script(ok(ACCEPTED))
    assert script.client(api_key="pyoco_k.s").submit_run("f", {"x": 1}, tag="t", tags=["a"]) == ACCEPTED
    (asked,) = script.asked
    assert json.loads(asked.content) == {"flow_name": "f", "params": {"x": 1}, "tag": "t", "tags": ["a"]}
    assert asked.headers["x-api-key"] == "pyoco_k.s"
    assert len(asked.headers["idempotency-key"]) == 32


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda c: c.get_run("a/b"), "GET /runs/a%2Fb"),
        (lambda c: c.get_run_with_records("r"), "GET /runs/r?include=records"),
        (lambda c: c.cancel_run("r"), "POST /runs/r/cancel"),
        (lambda c: c.patch_worker_hidden("w", hidden=True), "PATCH /workers/w"),
        (lambda c: c.delete_wheel("a.whl"), "DELETE /wheels/a.whl"),
        (lambda c: c.list_dlq(reason="lost_job", limit=2, before=9), "GET /dlq?reason=lost_job&limit=2&before=9"),
        (lambda c: c.replay_letter(7), "POST /dlq/7/replay"),
        (lambda c: c.restart_actor("g1", "runtime/link"), "POST /actors/g1/runtime/link/restart"),
    ],
)
def test_every_call_has_its_path(call: Callable[[PyocoHttpClient], object], wanted: str) -> None:
    """Method, path and query are those of the contract."""
    script = Script(ok({"run_id": "r", "status": "COMPLETED"}))
    call(script.client())
    (asked,) = script.asked
    assert f"{asked.method} {asked.url.raw_path.decode()}" == wanted


def test_lists_may_come_as_a_page_or_plain() -> None:
    """Each method gives its own form, whatever the gateway answers."""
    run = {"run_id": "r", "flow_name": "f", "status": "PENDING"}
    assert Script(ok({"items": [run], "next_cursor": "c"})).client().list_runs() == [run]
    assert Script(ok([run])).client().list_runs_vnext() == {"items": [run], "next_cursor": None}


def test_a_wheel_is_streamed_with_its_progress(tmp_path: Path) -> None:
    """The form is whole, its length is told, and the progress ends at the size of the file."""
    path, told = tmp_path / "demo-1.0-py3-none-any.whl", []
    path.write_bytes(b"x" * 100_000)
    script = Script(ok({"name": path.name}))
    script.client().upload_wheel_file(path, tags=["a", " b "], on_progress=lambda *each: told.append(each))
    (asked,) = script.asked
    assert int(asked.headers["content-length"]) == len(asked.content)
    assert b'filename="demo-1.0-py3-none-any.whl"' in asked.content
    assert b"\r\n\r\na,b\r\n" in asked.content
    assert told == [(65536, 100_000), (100_000, 100_000)]


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    """Nothing is sent."""
    script = Script()
    with pytest.raises(FileNotFoundError):
        script.client().upload_wheel_file(tmp_path / "demo-1.0-py3-none-any.whl")
    assert script.asked == []


# -- again ------------------------------------------------------------------------------------------------------------


def test_a_read_is_sent_again_after_whatever_happened() -> None:
    """GET survives refused connections, lost ones and 503, and honours Retry-After."""
    script = Script(UNSENT, LOST, httpx.Response(503, headers={"retry-after": "7"}), ok({"status": "ok"}))
    assert script.client().health() == {"status": "ok"}
    assert script.slept[2] == 7.0
    assert 0.1 <= script.slept[0] <= 0.2


def test_a_submit_that_may_have_arrived_is_repeated_with_its_key_at_a_gateway_of_ours() -> None:
    """The key is the same each time, so that there is one run."""
    script = Script(LOST, httpx.ReadTimeout("slow"), httpx.Response(503), ok(ACCEPTED), document=OURS)
    assert script.client().submit_run("f") == ACCEPTED
    assert len({asked.headers["idempotency-key"] for asked in script.asked}) == 1


def test_a_batch_that_may_have_arrived_is_repeated_with_its_key_too() -> None:
    """So that each item is one run; a key that the caller chose is the one that is sent."""
    result = {"results": [ACCEPTED], "accepted": 1, "refused": 0}
    script = Script(LOST, httpx.Response(503), ok(result), ok(result), document=OURS)
    client = script.client()
    assert client.submit_batch([{"flow_name": "f"}]) == result
    assert client.submit_batch([{"flow_name": "f"}], idempotency_key="mine") == result
    first, *again, other = (asked.headers["idempotency-key"] for asked in script.asked)
    assert again == [first, first]
    assert other == "mine"


@pytest.mark.parametrize("reply", [LOST, httpx.Response(503)])
def test_a_submit_that_may_have_arrived_is_not_repeated_at_the_published_gateway(reply: Reply) -> None:
    """It would be a second run."""
    script = Script(reply, document=PEERS)
    with pytest.raises(httpx.HTTPError):
        script.client().submit_run("f")
    assert len(script.asked) == 1


def test_of_an_unknown_gateway_only_a_503_is_repeated() -> None:
    """It says that it did nothing; a lost connection says nothing."""
    assert Script(httpx.Response(503), ok(ACCEPTED)).client().submit_run("f") == ACCEPTED
    with pytest.raises(GatewayUnreachable):
        Script(LOST).client().submit_run("f")


def test_what_never_arrived_is_always_sent_again() -> None:
    """Even what must not be done twice."""
    assert Script(UNSENT, ok(ACCEPTED), document=PEERS).client().submit_run("f") == ACCEPTED
    assert Script(UNSENT, ok({"process": "g", "actor": "a"})).client().restart_actor("g", "a")["actor"] == "a"
    with pytest.raises(GatewayUnreachable):
        Script(LOST).client().restart_actor("g", "a")


def test_a_delete_whose_answer_was_lost_is_done() -> None:
    """The second attempt finds nothing: the first was heard. A first attempt that finds nothing is refused."""
    missing = httpx.Response(404, json={"detail": "wheel not found", "err_id": "ERR-PYOCO-0023"})
    assert Script(LOST, missing).client().delete_wheel("a.whl") == {"name": "a.whl", "deleted": True}
    with pytest.raises(GatewayRefused):
        Script(missing).client().delete_wheel("a.whl")


# -- errors -----------------------------------------------------------------------------------------------------------


def test_a_refusal_is_also_the_error_of_httpx() -> None:
    """Who catches what the published client raises catches this."""
    script = Script(httpx.Response(404, json={"detail": "run not found", "err_id": "ERR-PYOCO-0005"}))
    with pytest.raises(httpx.HTTPStatusError) as caught:
        script.client().get_run("r")
    assert isinstance(caught.value, GatewayRefused)
    assert (caught.value.status, caught.value.err_id, caught.value.detail) == (404, "ERR-PYOCO-0005", "run not found")


def test_an_unreachable_gateway_is_named_without_its_password() -> None:
    """The address is in the text, with ERR-PYOCO-0001."""
    script = Script(UNSENT)
    client = PyocoHttpClient("http://me:secret@gateway.test", transport=httpx.MockTransport(script), retries=0)
    with pytest.raises(httpx.ConnectError, match=r"http://gateway\.test") as caught:
        client.health()
    assert isinstance(caught.value, GatewayUnreachable)
    assert caught.value.err_id == "ERR-PYOCO-0001"
    assert "secret" not in str(caught.value)


def test_a_redirect_is_not_followed() -> None:
    """The key goes to nobody else; the error says where to."""
    script = Script(httpx.Response(302, headers={"location": "http://evil.test/"}))
    with pytest.raises(GatewayRefused, match="evil"):
        script.client(api_key="pyoco_k.s").health()
    assert len(script.asked) == 1


def test_another_server_is_told_apart() -> None:
    """A page instead of JSON is no gateway."""
    with pytest.raises(NotAGateway):
        Script(httpx.Response(200, text="<html>")).client().get_run("r")


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "", "http://"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    """With an example of one."""
    with pytest.raises(InvalidArgument, match="looks like"):
        PyocoHttpClient(url)


# -- watching ---------------------------------------------------------------------------------------------------------


def test_a_watch_goes_on_after_a_break_without_telling_twice() -> None:
    """It says where it was; what it has told already is dropped, older states too; it ends with the run."""
    script = Script(
        stream(snapshot("PENDING", 4), snapshot("RUNNING", 5)),
        UNSENT,
        httpx.Response(503),
        stream(snapshot("RUNNING", 5), snapshot("PENDING", 4), snapshot("COMPLETED", 9), snapshot("COMPLETED", 9)),
    )
    events = list(script.client().watch("r1"))
    assert statuses(iter(events)) == ["PENDING", "RUNNING", "COMPLETED"]
    assert len([each for each in events if isinstance(each, Interrupted)]) == 2
    assert [asked.headers.get("last-event-id") for asked in script.asked] == [None, "5", "5", "5"]


def test_a_watch_of_the_published_gateway_tells_nothing_twice() -> None:
    """It has no ids: what has not changed is dropped."""
    script = Script(stream(snapshot("RUNNING", x=1)), stream(snapshot("RUNNING", x=1), snapshot("FAILED")))
    assert statuses(script.client().watch("r1")) == ["RUNNING", "FAILED"]


def test_since_leaves_out_what_is_older_but_never_the_end() -> None:
    """A worker whose clock is behind must not let a watcher wait for ever."""
    script = Script(stream(snapshot("PENDING", updated_at=1), snapshot("COMPLETED", updated_at=2)))
    assert statuses(script.client().watch("r1", 5.0)) == ["COMPLETED"]
    assert "since" not in script.asked[0].url.params


def test_a_watch_of_no_run_fails_at_once_and_one_that_never_opens_soon() -> None:
    """There is nothing to wait for."""
    script = Script(httpx.Response(404, json={"detail": "run not found"}))
    with pytest.raises(GatewayRefused):
        list(script.client().watch("r1"))
    with pytest.raises(GatewayUnreachable):
        list(Script(UNSENT, UNSENT).client(retries=1).watch("r1"))


def test_waiting_ends_in_time() -> None:
    """The status that was known last is in the error."""
    script = Script(stream(snapshot("RUNNING", 1)))
    client = script.client()
    times = iter([0.0, 0.0, 0.1, 0.2, 99.0, 99.0])
    client._clock = lambda: next(times)
    with pytest.raises(WaitTimeout, match="RUNNING"):
        client.wait("r1", 10.0)
    assert script.asked[0].url.params["timeout_sec"] == "10"


def test_watch_run_gives_what_the_published_client_gives() -> None:
    """Every event of one stream as a dict; what is no JSON as raw; no new connection."""
    script = Script(stream("event: a\ndata: {}\n\n", ": hi\n\n", "data: x\ndata: y\n\n"))
    found = list(script.client().watch_run("r1", include_records=True, since=1.5, timeout_sec=3))
    assert found == [{"event": "a", "data": {}}, {"event": "message", "data": {"raw": "x\ny"}}]
    assert script.asked[0].url.query == b"include=records&since=1.5&timeout_sec=3"


def test_the_list_is_watched_on_from_where_it_was() -> None:
    """Changes, the word that some were dropped, and the place in the next request."""
    run = json.dumps({"run_id": "r", "flow_name": "f", "status": "PENDING"})
    first = stream(f"id: 7\nevent: run\ndata: {run}\n\n", 'id: 9\nevent: dropped\ndata: {"reason": "slow"}\n\n')
    script = Script(first, stream('event: heartbeat\ndata: {"ts": 2.0}\n\n'))
    events = script.client().watch_list(tag="t")
    assert isinstance(next(events), RunListed)
    assert next(events) == ListDropped("slow")
    assert next(events) == Heartbeat(2.0)
    assert script.asked[1].headers["last-event-id"] == "9"


# -- the async one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_async_client_works_on_both_backends(backend: str, tmp_path: Path) -> None:
    """Retries, uploads, a watch that breaks, and wait."""
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(b"y" * 70_000)
    told: list[tuple[int, int]] = []
    replies: list[Reply] = [LOST, ok(ACCEPTED), ok({"name": wheel.name}), stream(snapshot("RUNNING", 1)), LOST]
    script = Script(*replies, stream(snapshot("COMPLETED", 2)), document=OURS)

    async def main() -> None:
        async with AsyncPyocoHttpClient(URL, transport=httpx.MockTransport(script)) as client:
            assert await client.submit_run("f") == ACCEPTED
            assert (await client.upload_wheel_file(wheel, on_progress=lambda *each: told.append(each)))["name"]
            assert (await client.wait("r1", 30))["status"] == "COMPLETED"

    anyio.run(main, backend=backend)
    assert told[-1] == (70_000, 70_000)


@pytest.mark.trio
async def test_an_attempt_of_the_async_client_takes_no_longer_than_it_may(autojump_clock: object) -> None:
    """A gateway that sends a byte now and then is given up all the same."""

    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            while True:
                await anyio.sleep(1)
                yield b" "

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Drip()))
    async with AsyncPyocoHttpClient(URL, transport=transport, timeout_sec=5, retries=1) as client:
        began = anyio.current_time()
        with pytest.raises(GatewayUnreachable, match="5 s"):
            await client.health()
        assert anyio.current_time() - began < 11
