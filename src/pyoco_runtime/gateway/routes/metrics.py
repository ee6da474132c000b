"""GET /metrics."""

from __future__ import annotations

from quart import Blueprint, Response

from pyoco_runtime.gateway.caller import caller, respond
from pyoco_runtime.gateway.exchange import Reply
from pyoco_runtime.gateway.figures import CONTENT_TYPE, Figures


def metric_routes(figures: Figures) -> Blueprint:
    """For Prometheus."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    async def metrics() -> Response:
        return respond(Reply(body=await figures.text(caller()), content_type=CONTENT_TYPE))

    return routes
