"""Requests about the gateway itself and the processes around it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from pyoco_runtime.client.answers import Health, Process, Ready, Restarted
from pyoco_runtime.client.errors import InvalidArgument
from pyoco_runtime.client.reading import json_list, json_object, text
from pyoco_runtime.client.request import Again, Request, segment


def health() -> Request[Health]:
    """GET /health."""
    return Request(method="GET", path="/health", read=json_object)


def ready() -> Request[Ready]:
    """GET /ready: not to be ready is an answer too."""
    return Request(method="GET", path="/ready", read=_ready, expects=frozenset({200, 503}))


def get_metrics() -> Request[str]:
    """GET /metrics."""
    return Request(method="GET", path="/metrics", read=text)


def openapi() -> Request[dict[str, Any]]:
    """GET /openapi.json."""
    return Request(method="GET", path="/openapi.json", read=json_object)


def actors() -> Request[list[Process]]:
    """GET /actors."""
    return Request(method="GET", path="/actors", read=json_list)


def restart_actor(process: str, actor: str) -> Request[Restarted]:
    """POST /actors/{process}/{actor}/restart: each time restarts it."""
    if not actor.strip("/"):
        raise InvalidArgument("actor: is empty; give the name or the path of an actor, like http")
    path = f"/actors/{segment('process', process)}/{quote(actor.strip('/'), safe='/')}/restart"
    return Request(method="POST", path=path, read=json_object, again=Again.UNSENT)


def _ready(response: httpx.Response) -> Ready:
    found = json_object(response)
    if response.status_code == 200:
        return {"status": "ready", "missing": []}
    detail = found.get("detail")
    missing = detail.get("missing") if isinstance(detail, dict) else None
    return {"status": "not ready", "missing": [str(each) for each in missing or (detail,)]}
