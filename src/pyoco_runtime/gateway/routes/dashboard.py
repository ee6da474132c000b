"""GET / and /static/*: the dashboard, its texts and its settings. They need no key, and hold nothing of anybody."""

from __future__ import annotations

from functools import lru_cache

from quart import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from pyoco_runtime.gateway.auth import Gate
from pyoco_runtime.gateway.dashboard_config import DashboardConfig
from pyoco_runtime.gateway.exchange import JSON
from pyoco_runtime.gateway.static_files import StaticFile, StaticFiles, made
from pyoco_runtime.messages.catalogue import LANGUAGES, Language, messages, ui_texts, ui_version
from pyoco_runtime.model.wire import dump

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # kept, and asked for again: an upgrade is seen at once
}


def dashboard_routes(config: DashboardConfig, gate: Gate, files: StaticFiles | None = None) -> Blueprint:
    """The page and all that it consists of."""
    routes = Blueprint("dashboard", __name__)
    there = files or StaticFiles()
    settings = made(dump(_settings(config, gate)), JSON)

    @routes.get("/")
    async def page() -> Response:
        return _answer(there.find("index.html"))

    @routes.get("/static/config.json")
    async def own_settings() -> Response:
        return _answer(settings)

    @routes.get("/static/messages/<lang>.json")
    async def texts(lang: str) -> Response:
        return _answer(next((_texts(known, ui_version()) for known in LANGUAGES if known == lang), None))

    @routes.get("/static/<path:name>")
    async def file(name: str) -> Response:
        return _answer(there.find(name))

    return routes


def _settings(config: DashboardConfig, gate: Gate) -> dict[str, object]:
    return {
        "lang": config.lang,
        "auth": "api_key" if gate.is_guarded else "none",
        "api_key_header": gate.header,
        "version": config.version,
        "stale_after_sec": config.stale_after_sec,
    }


@lru_cache(maxsize=len(LANGUAGES))
def _texts(lang: Language, version: tuple[int, ...]) -> StaticFile:
    return made(dump({**messages(lang), **ui_texts(lang, version)}), JSON)


def _answer(found: StaticFile | None) -> Response:
    if found is None:
        raise NotFound
    response = Response(found.body, headers=HEADERS, content_type=found.content_type)
    response.set_etag(found.etag)
    if request.if_none_match.contains_weak(found.etag):
        response = Response(b"", 304, headers=HEADERS)
        response.set_etag(found.etag)
    return response
