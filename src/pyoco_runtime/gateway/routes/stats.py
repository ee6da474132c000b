"""GET /stats and GET /stats/watch: the last hour, from memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import anyio
from quart import Blueprint, Response, request

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.caller import caller, respond
from pyoco_runtime.gateway.exchange import as_json, behind_headers, query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.sse import LONGEST_SEC, STOPPING, Patience, event, streaming
from pyoco_runtime.gateway.stats_view import counts_of, stats
from pyoco_runtime.model.api_key import Principal

TELL_SEC = 15.0  # as often as the queue is looked at
COUNT_SEC = 1.0  # how many runs there are changes with every run, and costs next to nothing to read


def stats_routes(parts: GatewayParts) -> Blueprint:
    """For charts: everybody sees the runs of his tenant, and admins the queue."""
    routes = Blueprint("stats", __name__)

    @routes.get("/stats")
    async def last_hour() -> Response:
        _check_fresh(parts)
        return respond(as_json(stats(parts, caller()), headers=behind_headers(parts.runs.behind)))

    @routes.get("/stats/watch")
    async def watch_hour() -> Response:
        timeout_sec = query_of(request.query_string).whole("timeout_sec", LONGEST_SEC, 1, LONGEST_SEC)
        _check_fresh(parts)
        return streaming(parts.streams.counted(caller(), _hours(parts, caller(), timeout_sec)))

    return routes


def _check_fresh(parts: GatewayParts) -> None:
    if not parts.link.is_up:
        raise NatsUnavailable(parts.link.problem)


async def _hours(parts: GatewayParts, who: Principal | None, timeout_sec: float) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, timeout_sec)
    told = stats(parts, who)
    yield event("stats", told)
    due = anyio.current_time() + TELL_SEC
    while await patience.goes_on(partial(anyio.sleep, COUNT_SEC)):
        counts = counts_of(parts, who)
        if anyio.current_time() >= due:
            told = stats(parts, who)
            due += TELL_SEC
            yield event("stats", told)
        elif counts != told["counts"]:
            told["counts"] = counts
            yield event("counts", {"counts": counts, "ts": parts.clock()})
        elif patience.is_silent:
            yield event("heartbeat", {"ts": parts.clock()})
        else:
            continue
        patience.spoke()
    if patience.is_closing:
        yield event("end", STOPPING)
