"""GET /workers/watch: the list of workers as it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from quart import Blueprint, Response, request

from pyoco_runtime.errors import InvalidWorkersRequest, NatsUnavailable
from pyoco_runtime.gateway.caller import caller
from pyoco_runtime.gateway.exchange import query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.query import Query
from pyoco_runtime.gateway.routes.workers import listed, shown
from pyoco_runtime.gateway.sse import LONGEST_SEC, STOPPING, Patience, event, streaming
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.worker import WorkerRecord, WorkerState, effective_state

GATHER_SEC = 0.2  # changes of many workers are looked at together

Seen = dict[str, tuple[WorkerRecord, WorkerState]]
"""Each worker of the list by its id, and what it is shown to do."""


def worker_watch_routes(parts: GatewayParts) -> Blueprint:
    """The stream of the list; filters are those of GET /workers."""
    routes = Blueprint("workers_watch", __name__)

    @routes.get("/workers/watch")
    async def watch_workers() -> Response:
        query = query_of(request.query_string).wrong_is(InvalidWorkersRequest)
        who, timeout_sec = caller(), query.whole("timeout_sec", LONGEST_SEC, 1, LONGEST_SEC)
        if not parts.link.is_up:
            raise NatsUnavailable(parts.link.problem)
        listed(parts, query)  # what is wrong in the query is told before the stream begins
        return streaming(parts.streams.counted(who, _workers(parts, query, who, timeout_sec)))

    return routes


async def _workers(
    parts: GatewayParts, query: Query, who: Principal | None, timeout_sec: float
) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, timeout_sec)
    with parts.workers.following() as bell:
        seen, behind = _look(parts, query), _behind(parts)
        items = [shown(parts, record, who) for record, _ in seen.values()]
        yield event("workers", {"items": items, **behind, "ts": parts.clock()})
        while await patience.goes_on(bell.next):
            await anyio.sleep(GATHER_SEC)
            # also after a silence: that a worker is DISCONNECTED nobody tells
            before, was_behind, seen, behind = seen, behind, _look(parts, query), _behind(parts)
            # only what has changed is put into words: with many workers somebody's heart beats all the time
            for worker_id, (record, state) in seen.items():
                if before.get(worker_id) != (record, state):
                    yield event("worker", shown(parts, record, who))
                    patience.spoke()
            for worker_id in sorted(before.keys() - seen.keys()):
                yield event("gone", {"worker_id": worker_id})
                patience.spoke()
            if behind != was_behind or patience.is_silent:
                yield event("heartbeat", {**behind, "ts": parts.clock()})
                patience.spoke()
    if patience.is_closing:
        yield event("end", STOPPING)


def _look(parts: GatewayParts, query: Query) -> Seen:
    now, timeout_sec = parts.clock(), parts.disconnect_timeout_sec
    return {record.worker_id: (record, effective_state(record, now, timeout_sec)) for record in listed(parts, query)}


def _behind(parts: GatewayParts) -> dict[str, str | None]:
    behind = parts.workers.behind
    return {"behind": None if behind is None else behind.why}
