"""GET /health and GET /ready."""

from __future__ import annotations

from quart import Blueprint

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.health_view import HealthView
from pyoco_runtime.gateway.problems import Answer, problem


def health_routes(health: HealthView) -> Blueprint:
    """Whether the process lives, and whether it can serve."""
    routes = Blueprint("health", __name__)

    @routes.get("/health")
    async def is_alive() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/ready")
    async def is_ready() -> Answer:
        missing = health.missing()
        if not missing:
            return {"status": "ready"}, 200, {}
        body, status, headers = problem({"missing": list(missing)}, NatsUnavailable.number, 503)
        return {**body, "status": "not ready"}, status, headers

    return routes
