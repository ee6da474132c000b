"""GET /openapi.json and GET /docs: what this gateway can do, for programs and for people."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from quart import Blueprint, Response, render_template

from pyoco_runtime.gateway import openapi
from pyoco_runtime.gateway.caller import respond
from pyoco_runtime.gateway.exchange import Reply
from pyoco_runtime.gateway.openapi.document import document
from pyoco_runtime.gateway.openapi.page import page_for
from pyoco_runtime.model.wire import dump

HOME = Path(openapi.__file__).parent


def openapi_routes(api_key_header: str | None = None) -> Blueprint:
    """The description of the API; `api_key_header` is the header that carries the key, None when keys are off."""
    routes = Blueprint("openapi", __name__, template_folder=str(HOME))
    described = Reply(body=dump(document(api_key_header)))
    page = page_for(api_key_header)
    css = (HOME / "docs.css").read_text(encoding="utf-8")
    headers = _headers(css)

    @routes.get("/openapi.json")
    async def for_programs() -> Response:
        return respond(described)

    @routes.get("/docs")
    async def for_people() -> Response:
        names = frozenset(value.name for value in page.values)
        text = await render_template("docs.html", page=page, names=names, css=css)
        return Response(text, headers=headers, content_type="text/html; charset=utf-8")

    return routes


def _headers(css: str) -> dict[str, str]:
    """Nothing but the page's own style is allowed: no script, no image, no frame around it."""
    style = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
    return {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
