"""The Quart app, put together from its routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import anyio
from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable
from quart import Blueprint, Quart, Response, g, request
from quart.utils import cancel_tasks

from pyoco_runtime.gateway import problems
from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.doubts import Doubts
from pyoco_runtime.gateway.figures import Figures
from pyoco_runtime.gateway.front import Front
from pyoco_runtime.gateway.health_view import HealthView
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.routes.actors import actor_routes
from pyoco_runtime.gateway.routes.actors_watch import actor_watch_routes
from pyoco_runtime.gateway.routes.dashboard import dashboard_routes
from pyoco_runtime.gateway.routes.dlq import letter_routes
from pyoco_runtime.gateway.routes.dlq_watch import letter_watch_routes
from pyoco_runtime.gateway.routes.health import health_routes
from pyoco_runtime.gateway.routes.metrics import metric_routes
from pyoco_runtime.gateway.routes.openapi import openapi_routes
from pyoco_runtime.gateway.routes.runs import run_routes
from pyoco_runtime.gateway.routes.stats import stats_routes
from pyoco_runtime.gateway.routes.watch import watch_routes
from pyoco_runtime.gateway.routes.wheels import wheel_routes
from pyoco_runtime.gateway.routes.workers import worker_routes
from pyoco_runtime.gateway.routes.workers_watch import worker_watch_routes
from pyoco_runtime.gateway.run_list import RunList
from pyoco_runtime.gateway.steady_body import SteadyConnection, SteadyRequest, drop_waiting
from pyoco_runtime.gateway.submissions import Submissions
from pyoco_runtime.gateway.traffic import Traffic
from pyoco_runtime.gateway.waits import Waits
from pyoco_runtime.replay import Replay


def create_app(health: HealthView, routes: Iterable[Blueprint] = ()) -> Quart:
    """An app with /health, /ready and these routes, whose errors are all answered as JSON."""
    app = Quart(__name__, static_folder=None)
    app.asgi_http_class = _Exchange
    app.request_class = SteadyRequest
    app.config["MAX_CONTENT_LENGTH"] = None  # every route that reads a body has its own limit
    problems.install(app)
    for blueprint in (health_routes(health), *routes):
        app.register_blueprint(blueprint)
    return app


def create_probe_app(health: HealthView) -> Quart:
    """The small app of a process without the gateway: /health and /ready only."""
    return create_app(health)


def create_gateway(parts: GatewayParts) -> ASGIFramework:
    """The whole HTTP contract, its busiest routes without detours."""
    submissions, runs = _submissions(parts), _run_list(parts)
    hot = {("POST", "/runs"): submissions.one, ("POST", "/runs/batch"): submissions.batch, ("GET", "/runs"): runs.page}
    return Front(create_gateway_app(parts), parts.gate, parts.traffic, hot)


def create_gateway_app(parts: GatewayParts) -> Quart:
    """The whole HTTP contract."""
    submissions, runs, waits = _submissions(parts), _run_list(parts), _waits(parts)
    app = create_app(
        parts.health,
        (
            run_routes(parts, submissions, runs, waits),
            watch_routes(parts, runs, waits),
            worker_routes(parts),
            wheel_routes(parts.shop),
            metric_routes(Figures(parts)),
            stats_routes(parts),
            actor_routes(parts),
            actor_watch_routes(parts),
            worker_watch_routes(parts),
            letter_watch_routes(parts),
            letter_routes(parts, Replay(parts.submitter, parts.keeper)),
            dashboard_routes(parts.dashboard, parts.gate),
            openapi_routes(parts.gate.header if parts.gate.is_guarded else None),
        ),
    )
    _guard(app, parts.gate)
    _measure(app, parts.traffic)
    return app


def _submissions(parts: GatewayParts) -> Submissions:
    doubts = Doubts(parts.workers, parts.clock, parts.disconnect_timeout_sec)
    return Submissions(parts.submitter, parts.check_flow, doubts, parts.default_tag, parts.workflow_yaml_max_bytes)


def _run_list(parts: GatewayParts) -> RunList:
    return RunList(parts.runs, parts.keeper, parts.submitter, parts.link)


def _waits(parts: GatewayParts) -> Waits:
    return Waits(
        parts.workers,
        parts.clock,
        disconnect_timeout_sec=parts.disconnect_timeout_sec,
        stale_after_sec=parts.dashboard.stale_after_sec,
    )


def _guard(app: Quart, gate: Gate) -> None:
    @app.before_request
    async def admit() -> None:
        g.principal = await gate.admit(request.scope["headers"], request.path)


def _measure(app: Quart, traffic: Traffic) -> None:
    @app.before_request
    async def begin() -> None:
        g.began = anyio.current_time()

    @app.after_request
    async def end(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule is not None else "(none)"
        took_sec = anyio.current_time() - g.get("began", anyio.current_time())
        traffic.note(request.method, route, response.status_code, took_sec)
        return response


class _Exchange(SteadyConnection):
    """A request and its answer; once cancelled, its handler ends too, which Quart's own would leave running."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = self._create_request_from_scope(send)
        listening = asyncio.ensure_future(self.handle_messages(request, receive))
        handling = asyncio.ensure_future(self.handle_request(request, send))
        try:
            await asyncio.wait((listening, handling), return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await cancel_tasks({listening, handling})  # and raises what the handler raised
            finally:
                drop_waiting(receive)
