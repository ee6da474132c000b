"""Who asks, and what he asks, from the request that Quart is serving."""

from __future__ import annotations

from quart import Response, g, request

from pyoco_runtime.errors import AdminOnly, BodyTooLarge
from pyoco_runtime.gateway.body_time import body_in_time
from pyoco_runtime.gateway.exchange import Ask, Reply, query_of
from pyoco_runtime.model.api_key import Principal

BODY_LIMIT = 16 * 2**20  # bytes of a JSON body; a batch of 1,000 submissions is some 300 kB


def caller() -> Principal | None:
    """Who asks; None when API keys are off."""
    found: Principal | None = g.get("principal")
    return found


def check_admin() -> None:
    """Let only admins pass, and everybody when API keys are off. Raises AdminOnly."""
    who = caller()
    if who is not None and not who.is_admin:
        raise AdminOnly("make one with: pyoco-server-admin api-key create --tenant <tenant> --admin")


async def the_ask() -> Ask:
    """The request as a value. Raises InvalidRequest, BodyTooLarge."""
    return Ask(
        query=query_of(request.query_string),
        caller=caller(),
        body=await read_body(BODY_LIMIT),
        idempotency_key=request.headers.get("Idempotency-Key"),
    )


async def read_body(limit: int) -> bytes:
    """The whole body, but no more than the limit is ever in memory. Raises BodyTooLarge, InvalidRequest."""
    parts: list[bytes] = []
    size = 0
    async with body_in_time():
        async for part in request.body:
            size += len(part)
            if size > limit:
                raise BodyTooLarge(f"a body has at most {limit:,} bytes")
            parts.append(part)
    return b"".join(parts)


def respond(reply: Reply) -> Response:
    """The answer as Quart wants it."""
    return Response(reply.body, reply.status, dict(reply.headers), content_type=reply.content_type)
