"""The Quart app, put together from its routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart import Blueprint, Quart
from quart.asgi import ASGIHTTPConnection
from quart.utils import cancel_tasks

from pyoco_runtime.gateway import problems
from pyoco_runtime.gateway.health_view import HealthView
from pyoco_runtime.gateway.routes.health import health_routes


def create_app(health: HealthView, routes: Iterable[Blueprint] = ()) -> Quart:
    """An app with /health, /ready and these routes, whose errors are all answered as JSON."""
    app = Quart(__name__, static_folder=None)
    app.asgi_http_class = _Exchange
    problems.install(app)
    for blueprint in (health_routes(health), *routes):
        app.register_blueprint(blueprint)
    return app


def create_probe_app(health: HealthView) -> Quart:
    """The small app of a process without the gateway: /health and /ready only."""
    return create_app(health)


class _Exchange(ASGIHTTPConnection):
    """A request and its answer; once cancelled, its handler ends too, which Quart's own would leave running."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = self._create_request_from_scope(send)
        listening = asyncio.ensure_future(self.handle_messages(request, receive))
        handling = asyncio.ensure_future(self.handle_request(request, send))
        try:
            await asyncio.wait((listening, handling), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_tasks({listening, handling})  # and raises what the handler raised
