"""/workers: who works, and who is shown."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from quart import Blueprint, Response, request

from pyoco_runtime.errors import InvalidRequest, InvalidWorkersRequest, NatsUnavailable, Unreadable, WorkerNotFound
from pyoco_runtime.gateway.caller import caller, respond, the_ask
from pyoco_runtime.gateway.exchange import as_json, behind_headers, query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.query import Query
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.wire import worker_json
from pyoco_runtime.model.worker import WorkerRecord, WorkerState, effective_state
from pyoco_runtime.run_keeper import may_see

STATES = tuple(WorkerState)


def worker_routes(parts: GatewayParts) -> Blueprint:
    """List and hide workers."""
    routes = Blueprint("workers", __name__)

    @routes.get("/workers")
    async def list_workers() -> Response:
        if not parts.link.is_up:
            raise NatsUnavailable(parts.link.problem)
        query = query_of(request.query_string).wrong_is(InvalidWorkersRequest)
        found = [shown(parts, record, caller()) for record in listed(parts, query)]
        return respond(as_json(found, headers=behind_headers(parts.workers.behind)))

    @routes.patch("/workers/<worker_id>")
    async def hide(worker_id: str) -> Response:
        hidden = _hidden(await _body())
        try:
            record = await parts.registry.hide(worker_id, hidden, parts.clock())
        except Unreadable as error:
            raise WorkerNotFound(f"its record cannot be read: {error}") from error
        if record is None:
            raise WorkerNotFound
        return respond(as_json({"worker_id": worker_id, "hidden": record.hidden, "updated_at": record.updated_at}))

    return routes


def listed(parts: GatewayParts, query: Query) -> tuple[WorkerRecord, ...]:
    """The workers that are asked for, as they are stored. Raises InvalidWorkersRequest."""
    state = query.choice("state", STATES)
    return parts.workers.index.query(
        scope=query.choice("scope", ("active", "all")) or "active",
        state=None if state is None else WorkerState(state),
        include_hidden=query.flag("include_hidden"),
        limit=query.whole("limit", 100, 1, 500),
        now=parts.clock(),
        disconnect_timeout_sec=parts.disconnect_timeout_sec,
    )


async def _body() -> object:
    try:
        return (await the_ask()).json()
    except InvalidRequest as error:
        raise InvalidWorkersRequest(str(error)) from error


def _hidden(body: object) -> bool:
    match body:
        case {"hidden": bool(hidden)}:
            return hidden
        case _:
            raise InvalidWorkersRequest('the body must be {"hidden": true} or {"hidden": false}')


def shown(parts: GatewayParts, record: WorkerRecord, who: Principal | None) -> dict[str, Any]:
    """The record as its readers see it; of other tenants' runs not even the ids."""
    state = effective_state(record, parts.clock(), parts.disconnect_timeout_sec)
    made = worker_json(evolve(record, state=state, heartbeat_at=record.last_heartbeat_at))
    if who is None:
        return made
    for key in ("current_run_id", "last_run_id"):
        if not _is_mine(parts, made.get(key), who):
            made[key] = None
    if made["last_run_id"] is None:
        made |= dict.fromkeys(("last_run_status", "last_run_started_at", "last_run_finished_at"))
    current = made.get("current_run_ids")
    if isinstance(current, list):
        made["current_run_ids"] = [each for each in current if _is_mine(parts, each, who)]
    return made


def _is_mine(parts: GatewayParts, run_id: object, who: Principal) -> bool:
    run = parts.runs.index.get(run_id) if isinstance(run_id, str) else None
    return run is not None and may_see(who, run.tenant_id)
