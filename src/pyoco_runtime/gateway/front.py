"""The busiest routes without a framework in between, which costs more than what they do; all else goes to Quart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGIReceiveEvent, ASGISendCallable, HTTPScope, Scope
from quart import Quart

from pyoco_runtime.errors import BodyTooLarge, InvalidRequest
from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.body_time import READ_SEC, too_slow
from pyoco_runtime.gateway.caller import BODY_LIMIT
from pyoco_runtime.gateway.exchange import Ask, Reply, as_json, query_of
from pyoco_runtime.gateway.problems import answer_to
from pyoco_runtime.gateway.traffic import Traffic

Handler = Callable[[Ask], Awaitable[Reply]]

DISCARD_LIMIT = 64 * 2**20  # bytes of a body that is too large: clients send all before they read the answer


class Front:
    """An ASGI app before an ASGI app. What it answers is what the same route of Quart would answer."""

    def __init__(
        self, behind: Quart, gate: Gate, traffic: Traffic, handlers: Mapping[tuple[str, str], Handler]
    ) -> None:
        self._behind = cast("ASGIFramework", behind)
        self._gate = gate
        self._traffic = traffic
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable, *more: Any) -> None:
        """Serve a connection's next request."""
        handler = self._handlers.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if handler is None:
            await self._behind(scope, receive, send, *more)
            return
        asked = cast("HTTPScope", scope)
        clock = asyncio.get_running_loop().time
        began = clock()
        reply = await self._reply(handler, asked, receive)
        self._traffic.note(asked["method"], asked["path"], reply.status, clock() - began)
        await _send(reply, send)

    async def _reply(self, handler: Handler, scope: HTTPScope, receive: ASGIReceiveCallable) -> Reply:
        try:
            caller = await self._gate.admit(scope["headers"], scope["path"])
            body = await _body(receive)
            key = _header(scope, b"idempotency-key")
            return await handler(
                Ask(query=query_of(scope["query_string"]), caller=caller, body=body, idempotency_key=key)
            )
        except Exception as error:  # noqa: BLE001 - as Quart does: a request that fails is answered all the same
            answer, status, headers = answer_to(error, scope["method"], scope["path"])
            return as_json(answer, status, headers)


async def _body(receive: ASGIReceiveCallable) -> bytes:
    """The whole body. Raises BodyTooLarge when it is over the limit and has come to its end, or to ours."""
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(READ_SEC):  # a third of the price of anyio's
            while more and size <= DISCARD_LIMIT:  # who reads no answer before he has sent all of it does not get one
                part, more = _part(await receive())
                size += len(part)
                if size <= BODY_LIMIT:
                    parts.append(part)
    except TimeoutError:
        if size <= BODY_LIMIT:
            raise too_slow() from None
    if size > BODY_LIMIT:
        raise BodyTooLarge(f"a body has at most {BODY_LIMIT:,} bytes")
    return b"".join(parts)


def _part(event: ASGIReceiveEvent) -> tuple[bytes, bool]:
    if event["type"] != "http.request":
        raise InvalidRequest("the client has gone before the body was complete")
    return event["body"], event["more_body"]


def _header(scope: HTTPScope, wanted: bytes) -> str | None:
    for name, value in scope["headers"]:
        if name == wanted:
            return value.decode("latin-1")
    return None


async def _send(reply: Reply, send: ASGISendCallable) -> None:
    headers = [(b"content-type", reply.content_type.encode()), (b"content-length", str(len(reply.body)).encode())]
    for name, value in reply.headers.items():
        headers.append((name.encode("latin-1"), value.encode("latin-1", "replace")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": reply.body, "more_body": False})
