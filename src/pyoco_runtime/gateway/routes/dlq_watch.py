"""GET /dlq/watch: the word that the dead letters have changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
from quart import Blueprint, Response, request

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.caller import caller, check_admin
from pyoco_runtime.gateway.exchange import query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.sse import LONGEST_SEC, STOPPING, Patience, event, streaming
from pyoco_runtime.model.letter_index import LetterFilter

GATHER_SEC = 1.0  # a broken flow makes letters as fast as its runs fail


def letter_watch_routes(parts: GatewayParts) -> Blueprint:
    """For admins, as the letters themselves; a stream tells how many there are and not what they say."""
    routes = Blueprint("dlq_watch", __name__)

    @routes.get("/dlq/watch")
    async def watch_letters() -> Response:
        check_admin()
        timeout_sec = query_of(request.query_string).whole("timeout_sec", LONGEST_SEC, 1, LONGEST_SEC)
        if not parts.link.is_up:
            raise NatsUnavailable(parts.link.problem)
        who = caller()
        tenant = None if who is None else who.tenant_id
        return streaming(parts.streams.counted(who, _letters(parts, tenant, timeout_sec)))

    return routes


async def _letters(parts: GatewayParts, tenant: str | None, timeout_sec: float) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, timeout_sec)
    with parts.letters.following() as bell:
        told = _shown(parts, tenant)
        yield event("change", {**told, "ts": parts.clock()})
        while await patience.goes_on(bell.next):
            now = _shown(parts, tenant)
            if now != told or patience.is_silent:
                yield event("heartbeat" if now == told else "change", {**now, "ts": parts.clock()})
                patience.spoke()
                told = now
            await anyio.sleep(GATHER_SEC)
    if patience.is_closing:
        yield event("end", STOPPING)


def _shown(parts: GatewayParts, tenant: str | None) -> dict[str, Any]:
    index, behind = parts.letters.index, parts.letters.behind
    newest = index.query(LetterFilter(tenant=tenant, with_nobodys=True), 1)
    reasons = index.counts(tenant, with_nobodys=True)
    return {
        "count": sum(reasons.values()),
        "newest_seq": newest[0].seq if newest else None,
        "reasons": reasons,
        "behind": None if behind is None else behind.why,
    }
