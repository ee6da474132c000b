"""Bodies that do not come to their end, and JSON that says a thing twice."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from pyoco_runtime.gateway.body_time import READ_SEC
from pyoco_runtime.gateway.multipart_reader import STALL_SEC
from tests.unit.gateway.support import Office, Stream, _scope, on_asyncio

JSON = "application/json"
FORM = "multipart/form-data; boundary=edge"
BEGIN = b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="demo-1.0-py3-none-any.whl"\r\n\r\n'


async def dribble(office: Office, method: str, path: str, kind: str, begin: bytes, pause_sec: float) -> Stream:
    """Send a body that goes on byte by byte, without an end; the answer, which came all the same."""
    pieces = [begin]
    stream = Stream()

    async def receive() -> dict[str, Any]:
        if not pieces:
            await anyio.sleep(pause_sec)
        return {"type": "http.request", "body": pieces.pop() if pieces else b" ", "more_body": True}

    await office.app(_scope(method, path, {"Content-Type": kind}), receive, stream.send)
    return stream


@pytest.mark.parametrize(
    ("method", "path", "kind", "begin"),
    [
        ("POST", "/runs", JSON, b"{"),
        ("POST", "/runs/batch", JSON, b"["),
        ("POST", "/runs/r-1/cancel", JSON, b"{"),
        ("PATCH", "/workers/w-1", JSON, b"{"),
        ("POST", "/runs/yaml", FORM, BEGIN % b"workflow"),
        ("POST", "/runs/yaml", FORM, b""),
    ],
)
@on_asyncio
async def test_a_body_that_does_not_end_is_refused(method: str, path: str, kind: str, begin: bytes) -> None:
    """Though something comes all the time; nothing is stored."""
    async with Office().open() as office:
        began = anyio.current_time()
        stream = await dribble(office, method, path, kind, begin, 1.0)
        assert READ_SEC <= anyio.current_time() - began < READ_SEC + 5
        stream.close()
        body = json.loads(await stream.body())
        stream.forget()
        err_id = "ERR-PYOCO-0019" if path.startswith("/workers") else "ERR-PYOCO-0002"
        assert (stream.status, body["err_id"]) == (422, err_id)
        assert "did not come to its end within 60 s" in body["detail"]
        assert not office.stored()


@on_asyncio
async def test_a_wheel_may_take_its_time_but_not_stand_still() -> None:
    """It may be large: only the time between two pieces has a limit."""
    async with Office().open() as office:
        began = anyio.current_time()
        stream = await dribble(office, "POST", "/wheels", FORM, BEGIN % b"wheel", STALL_SEC * 2)
        assert anyio.current_time() - began < STALL_SEC + 15
        stream.close()
        stream.forget()
        assert stream.status == 408


@pytest.mark.parametrize("is_batch", [False, True])
@on_asyncio
async def test_of_a_key_that_is_there_twice_the_last_counts(is_batch: bool) -> None:
    """As for the published gateway, and for most readers of JSON."""
    item = b'{"flow_name": "a", "params": {"x": 1, "x": 2}, "flow_name": "b"}'
    async with Office().open() as office:
        path, body = ("/runs/batch", b"[" + item + b"]") if is_batch else ("/runs", item)
        assert (await office.client.ask("POST", path, body)).status == 200
        (job,) = office.jobs()
        assert (job.flow_name, job.params) == ("b", {"x": 2})
