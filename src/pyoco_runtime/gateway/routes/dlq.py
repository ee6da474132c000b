"""/dlq: the dead letters, and how one becomes a run again."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from pyoco_runtime.errors import InvalidQuery, LetterNotFound, NatsUnavailable, Unreadable
from pyoco_runtime.gateway.caller import caller, check_admin, respond, the_ask
from pyoco_runtime.gateway.exchange import Ask, Reply, as_json, behind_headers
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.letter_index import LetterFilter
from pyoco_runtime.model.wire import letter_json
from pyoco_runtime.ports import StoredLetter
from pyoco_runtime.replay import Replay
from pyoco_runtime.run_keeper import may_see

REASONS = tuple(Reason)


def letter_routes(parts: GatewayParts, replay: Replay) -> Blueprint:
    """List, read, replay and drop dead letters; under API keys for admins, each for his own tenant's."""
    routes = Blueprint("dlq", __name__)

    @routes.get("/dlq")
    async def list_letters() -> Response:
        check_admin()
        return respond(await _page(parts, await the_ask()))

    @routes.get("/dlq/<int:seq>")
    async def read(seq: int) -> Response:
        check_admin()
        return respond(as_json(_shown(await letter_of(parts, seq, caller()))))

    @routes.post("/dlq/<int:seq>/replay")
    async def replay_letter(seq: int) -> Response:
        check_admin()
        accepted = await replay.replay(await letter_of(parts, seq, caller()), caller())
        return respond(as_json({"run_id": accepted.run_id, "status": "PENDING", "replay_of": seq}))

    @routes.delete("/dlq/<int:seq>")
    async def drop(seq: int) -> Response:
        check_admin()
        await letter_of(parts, seq, caller())
        was_there = await parts.dead_letters.drop(seq)
        parts.letters.drop(seq)
        if not was_there:
            raise LetterNotFound
        return respond(as_json({"seq": seq, "deleted": True}))

    return routes


async def letter_of(parts: GatewayParts, seq: int, who: Principal | None) -> StoredLetter:
    """The letter, if this caller may see it. Raises LetterNotFound, NatsUnavailable."""
    try:
        found = await parts.dead_letters.get(seq)
    except Unreadable as error:
        raise LetterNotFound(f"it cannot be read: {error}") from error
    if found is None or not _may_see(who, found.letter.tenant_id):
        raise LetterNotFound
    return found


async def _page(parts: GatewayParts, ask: Ask) -> Reply:
    if not parts.link.is_up:
        raise NatsUnavailable(parts.link.problem)
    query = ask.query.wrong_is(InvalidQuery)
    reason = query.choice("reason", REASONS)
    wanted = LetterFilter(
        reason=None if reason is None else Reason(reason),
        tag=query.text("tag"),
        flow=query.text("flow"),
        run_id=query.text("run_id"),
        tenant=None if ask.caller is None else ask.caller.tenant_id,
        with_nobodys=True,  # only admins come as far as this
    )
    limit = query.whole("limit", 50, 1, 200)
    before = query.whole("before", 2**62, 1, 2**62)
    found: list[dict[str, Any]] = []
    while len(found) < limit:
        entries = parts.letters.index.query(wanted, limit - len(found), before)
        for entry in entries:
            found += await _letter(parts, entry.seq)
        if not entries:
            before = 0
            break
        before = entries[-1].seq
    items = found[:limit]
    more = before > 0 and bool(parts.letters.index.query(wanted, 1, before))
    headers = behind_headers(parts.letters.behind)
    return as_json({"items": items, "next_before": before if more else None}, headers=headers)


async def _letter(parts: GatewayParts, seq: int) -> list[dict[str, Any]]:
    """The letter as it is shown; nothing if it is gone, of which nobody tells."""
    try:
        stored = await parts.dead_letters.get(seq)
    except Unreadable:
        return []
    if stored is None:
        parts.letters.drop(seq)
        return []
    return [_shown(stored)]


def _shown(stored: StoredLetter) -> dict[str, Any]:
    shown = letter_json(stored.letter)
    job = shown.pop("job", None)
    return {"seq": stored.seq, **shown, "replayable": job is not None or stored.letter.run_id is not None}


def _may_see(who: Principal | None, tenant_id: str | None) -> bool:
    """What belongs to no tenant is the admins'."""
    return may_see(who, tenant_id) or (tenant_id is None and who is not None and who.is_admin)
