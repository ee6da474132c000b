"""/runs: submit, list, read, cancel."""

from __future__ import annotations

from quart import Blueprint, Response, request

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.gateway.caller import caller, respond, the_ask
from pyoco_runtime.gateway.exchange import as_json, query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.run_list import RunList
from pyoco_runtime.gateway.run_view import owner, tasks_of, whole_run
from pyoco_runtime.gateway.submissions import Submissions
from pyoco_runtime.gateway.waits import Waits
from pyoco_runtime.gateway.workflow_form import read_workflow_form
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.worker import effective_state


def run_routes(parts: GatewayParts, submissions: Submissions, runs: RunList, waits: Waits) -> Blueprint:
    """Everything about runs but watching them."""
    routes = Blueprint("runs", __name__)

    @routes.post("/runs")
    async def submit() -> Response:
        return respond(await submissions.one(await the_ask()))

    @routes.post("/runs/batch")
    async def submit_batch() -> Response:
        return respond(await submissions.batch(await the_ask()))

    @routes.post("/runs/yaml")
    async def submit_yaml() -> Response:
        upload = await read_workflow_form(parts.workflow_yaml_max_bytes)
        key = request.headers.get("Idempotency-Key")
        return respond(await submissions.workflow(upload, caller(), key))

    @routes.get("/runs")
    async def list_runs() -> Response:
        return respond(await runs.page(await the_ask()))

    @routes.get("/runs/<run_id>")
    async def read(run_id: str) -> Response:
        include = query_of(request.query_string).texts("include")
        snapshot = (await parts.keeper.get(run_id, caller())).snapshot
        more = {**owner_of(parts, snapshot), "waiting": waits.of(snapshot)}
        return respond(as_json({**whole_run(snapshot, include), **more}))

    @routes.get("/runs/<run_id>/tasks")
    async def read_tasks(run_id: str) -> Response:
        return respond(as_json(tasks_of((await parts.keeper.get(run_id, caller())).snapshot)))

    @routes.post("/runs/<run_id>/cancel")
    async def cancel(run_id: str) -> Response:
        reason = _reason((await the_ask()).json())
        snapshot = await parts.keeper.cancel(run_id, caller(), reason)
        return respond(as_json(whole_run(snapshot, frozenset())))

    return routes


def owner_of(parts: GatewayParts, snapshot: RunSnapshot) -> dict[str, object]:
    """What is known of the worker that has the run."""
    if snapshot.worker_id is None:
        return {}
    record = parts.workers.index.get(snapshot.worker_id)
    state = None if record is None else effective_state(record, parts.clock(), parts.disconnect_timeout_sec)
    return owner(record, state)


def _reason(body: object) -> str | None:
    if body is None:
        return None
    reason = body.get("reason") if isinstance(body, dict) else body
    if isinstance(body, dict) and (reason is None or isinstance(reason, str)):
        return reason
    raise InvalidRequest('the body, if there is one, must be {"reason": "why"}')
