"""GET /actors/watch: the supervision trees as they change."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from attrs import asdict
from quart import Blueprint, Response, request

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.caller import caller, check_admin
from pyoco_runtime.gateway.exchange import query_of
from pyoco_runtime.gateway.house_look import HouseLook
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.problems import detail_of
from pyoco_runtime.gateway.sse import LONGEST_SEC, STOPPING, Patience, event, streaming
from pyoco_runtime.model.house import ProcessReport


def actor_watch_routes(parts: GatewayParts) -> Blueprint:
    """For operators, as GET /actors."""
    routes = Blueprint("actors_watch", __name__)
    look = HouseLook(parts.house)

    @routes.get("/actors/watch")
    async def watch_trees() -> Response:
        check_admin()
        timeout_sec = query_of(request.query_string).whole("timeout_sec", LONGEST_SEC, 1, LONGEST_SEC)
        if not parts.link.is_up:
            raise NatsUnavailable(parts.link.problem)
        return streaming(parts.streams.counted(caller(), _trees(parts, look, timeout_sec)))

    return routes


async def _trees(parts: GatewayParts, look: HouseLook, timeout_sec: float) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, timeout_sec)
    try:
        async with parts.house.watching() as watch:
            # looked at after the watch has begun: nothing falls between the two
            reports = await look.since(anyio.current_time())
            yield event("actors", {"items": [asdict(report) for report in reports], "ts": parts.clock()})
            while await patience.goes_on(watch.changed):
                known = reports
                # also after a silence: a process that was killed has told nobody
                reports = await look.since(anyio.current_time())
                for each in _changes(known, reports):
                    yield each
                    patience.spoke()
                if patience.is_silent:
                    yield event("heartbeat", {"ts": parts.clock()})
                    patience.spoke()
    except NatsUnavailable as error:  # the answer has begun: whoever comes back gets the 503
        yield event("end", {"reason": detail_of(error)})
        return
    if patience.is_closing:
        yield event("end", STOPPING)


def _changes(known: list[ProcessReport], now: list[ProcessReport]) -> list[bytes]:
    before = {report.process: report for report in known}
    changed = [event("process", asdict(report)) for report in now if before.get(report.process) != report]
    gone = before.keys() - {report.process for report in now}
    return changed + [event("gone", {"process": process}) for process in sorted(gone)]
