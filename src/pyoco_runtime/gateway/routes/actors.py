"""/actors: the supervision trees of all processes, and restarting one actor."""

from __future__ import annotations

from attrs import asdict
from quart import Blueprint, Response

from pyoco_runtime.gateway.caller import check_admin, respond
from pyoco_runtime.gateway.exchange import as_json
from pyoco_runtime.gateway.parts import GatewayParts


def actor_routes(parts: GatewayParts) -> Blueprint:
    """For operators: crash messages may hold anything, so that under API keys only admins see them."""
    routes = Blueprint("actors", __name__)

    @routes.get("/actors")
    async def trees() -> Response:
        check_admin()
        return respond(as_json([asdict(report) for report in await parts.house.reports()]))

    @routes.post("/actors/<process>/<path:actor>/restart")
    async def restart(process: str, actor: str) -> Response:
        check_admin()
        return respond(as_json({"process": process, "actor": await parts.house.restart(process, actor)}))

    return routes
