"""GET, POST and DELETE /wheels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from attrs import asdict
from quart import Blueprint, Response, request

from pyoco_runtime.errors import InvalidWheel, PyocoError, WheelTooLarge
from pyoco_runtime.gateway.caller import caller
from pyoco_runtime.gateway.exchange import query_of
from pyoco_runtime.gateway.multipart_reader import MultipartReader, take_rest
from pyoco_runtime.gateway.problems import Answer, problem
from pyoco_runtime.gateway.steady_body import SteadyBody
from pyoco_runtime.gateway.wheel_form import WheelForm
from pyoco_runtime.model.wheel_event import Actor, Caller, HistoryQuery, Source, WheelAction
from pyoco_runtime.model.wheels import WheelInfo, is_wheel_file
from pyoco_runtime.wheel_shop import WheelShop, too_large

FORM_BYTES = 1024 * 1024  # of a form beside its file, at most
SHOWN = 1000  # characters of a header that go into the history
MOST_EVENTS = 500


def wheel_routes(shop: WheelShop) -> Blueprint:
    """The wheels: they belong to no tenant."""
    routes = Blueprint("wheels", __name__)

    @routes.get("/wheels")
    async def wheels() -> list[dict[str, Any]]:
        return [wheel_shown(info) for info in await shop.list()]

    @routes.post("/wheels")
    async def upload() -> Answer | dict[str, Any]:
        pieces = _pieces()
        try:
            if 0 < shop.max_bytes < (request.content_length or 0) - FORM_BYTES:
                raise too_large(shop.max_bytes)
            kind = request.headers.get("content-type")
            reader = MultipartReader(kind, pieces, wanted="the wheel in the field `wheel`")
            return wheel_shown(await WheelForm(reader, shop, _caller()).receive())
        except WheelTooLarge as error:
            await take_rest(pieces)
            return problem(str(error), error.number, 413)
        except PyocoError:
            await take_rest(pieces)
            raise

    @routes.get("/wheels/history")
    async def history() -> list[dict[str, Any]]:
        return [asdict(event) for event in await shop.history(_history_query())]

    @routes.get("/wheels/<name>")
    async def download(name: str) -> Response:
        reading = await shop.open(name)
        headers = {
            "Content-Disposition": f'attachment; filename="{reading.info.name}"',
            "Content-Length": str(reading.info.size_bytes),
        }
        response = Response(reading.chunks(), headers=headers, content_type="application/octet-stream")
        response.timeout = None  # however slow the client reads
        return response

    @routes.delete("/wheels/<name>")
    async def delete(name: str) -> dict[str, Any]:
        info = await shop.delete(name, _caller())
        return {"name": info.name, "deleted": True}

    return routes


def wheel_shown(info: WheelInfo) -> dict[str, Any]:
    """A wheel in an answer, with the names of the contract and of the peer."""
    return {
        "name": info.name,
        "size_bytes": info.size_bytes,
        "bucket": info.bucket,
        "nuid": info.nuid,
        "modified": info.modified,
        "sha256_hex": info.sha256_hex,
        "tags": list(info.tags),
        "digest": info.digest,
        "sha256_b64": info.digest.partition("=")[2] or None,
        "mtime": info.mtime,
    }


def _pieces() -> AsyncIterator[bytes]:
    body = request.body
    return body.pieces() if isinstance(body, SteadyBody) else body


def _history_query() -> HistoryQuery:
    query = query_of(request.query_string).wrong_is(InvalidWheel)
    name = (query.text("wheel_name") or "").strip() or None
    if name is not None and not is_wheel_file(name):
        raise InvalidWheel(f"invalid wheel name: {name[:100]!r}; a wheel is named like demo-1.0-py3-none-any.whl")
    action = query.choice("action", tuple(WheelAction))
    return HistoryQuery(query.whole("limit", 100, 1, MOST_EVENTS), name, WheelAction(action) if action else None)


def _caller() -> Caller:
    who = caller()
    actor = Actor(tenant_id=who.tenant_id, api_key_id=who.key_id) if who else Actor()
    return Caller(
        actor,
        Source(
            remote_addr=request.remote_addr,
            x_forwarded_for=_header("x-forwarded-for"),
            x_real_ip=_header("x-real-ip"),
            user_agent=_header("user-agent"),
            host=_header("host"),
            scheme=request.scheme,
        ),
    )


def _header(name: str) -> str | None:
    found = request.headers.get(name)
    return found[:SHOWN] if found else None
