"""How the body of an answer is read."""

from __future__ import annotations

from typing import Any, cast

import httpx

from pyoco_runtime.client.errors import NotAGateway


def json_object(response: httpx.Response) -> Any:
    """The body as a JSON object. Raises NotAGateway."""
    found = _json(response)
    if not isinstance(found, dict):
        raise _strange(response, "not with a JSON object")
    return found


def json_list(response: httpx.Response) -> Any:
    """The body as a JSON list. Raises NotAGateway."""
    found = _json(response)
    if not isinstance(found, list):
        raise _strange(response, "not with a JSON list")
    return found


def json_page(response: httpx.Response) -> Any:
    """The body as a page; a list is one that has no next. Raises NotAGateway."""
    found = _json(response)
    if isinstance(found, list):
        return {"items": found, "next_cursor": None}
    if not isinstance(found, dict) or not isinstance(found.get("items"), list):
        raise _strange(response, "not with a list")
    return {"next_cursor": None, **found}


def text(response: httpx.Response) -> str:
    """The body as text."""
    return response.text


def problem_in(response: httpx.Response) -> tuple[object, str | None, str | None]:
    """Detail, ERR id and MSG id of an error, as far as it has them."""
    try:
        found = response.json()
    except ValueError:
        return _first_line(response), None, None
    if not isinstance(found, dict) or "detail" not in found:
        return _first_line(response), None, None
    return found["detail"], _text(found.get("err_id")), _text(found.get("msg_id"))


def _json(response: httpx.Response) -> object:
    try:
        return cast("object", response.json())
    except (ValueError, RecursionError):
        raise _strange(response, "not with JSON") from None


def _strange(response: httpx.Response, how: str) -> NotAGateway:
    request = response.request
    return NotAGateway(f"{request.url} answers {request.method} {how}; is it the address of a gateway?")


def _first_line(response: httpx.Response) -> str:
    """Something for people: what proxies and other servers answer is often a whole page."""
    moved = response.headers.get("location")
    if response.is_redirect and moved:
        return f"it has moved to {moved}; use that address"
    line = next(iter(response.text.strip().splitlines()), "")
    return line[:200] if line and not line.startswith("<") else response.reason_phrase


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
