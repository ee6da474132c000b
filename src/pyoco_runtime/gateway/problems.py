"""The one table from errors to HTTP answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from quart import Quart, request
from werkzeug.exceptions import HTTPException

from pyoco_runtime.errors import PyocoError

Answer = tuple[dict[str, object], int, dict[str, str]]

_INVALID_REQUEST = 2
_STATUS: Mapping[int, int] = {
    2: 422,  # invalid request
    3: 503,  # NATS unavailable
    5: 404,  # run not found
    14: 401,  # API key required
    15: 403,  # API key invalid
    16: 413,  # workflow file too large
    17: 422,  # invalid list query
    19: 422,  # invalid workers request
    20: 404,  # worker not found
    22: 409,  # wheel version conflict
    23: 404,  # wheel not found
    33: 404,  # no such actor
    36: 404,  # dead letter not found
    37: 409,  # dead letter cannot be replayed
    38: 409,  # idempotency key reused
    39: 403,  # admin key needed
    40: 413,  # body too large
    41: 503,  # busy
}
_TEXT: Mapping[int, str] = {
    2: "invalid request",
    3: "nats unavailable",
    5: "run not found",
    16: "workflow too large",
    17: "invalid list query",
    19: "invalid workers request",
    20: "worker not found",
    36: "dead letter not found",
    37: "dead letter cannot be replayed",
    38: "idempotency key reused",
    39: "admin key required",
    40: "request too large",
    41: "busy",
}
"""What `detail` begins with; for the others, the error says it itself."""

_log = logging.getLogger("pyoco_runtime.http")


def install(app: Quart) -> None:
    """Have every error of this app answered from here."""
    app.register_error_handler(HTTPException, _on_http_exception)
    app.register_error_handler(Exception, _on_error)


def problem(detail: object, number: int | None, status: int) -> Answer:
    """An error as the contract wants it, with the ids that share `number`."""
    return {"detail": detail, "err_id": _id("ERR", number), "msg_id": _id("MSG", number)}, status, {}


def status_of(error: PyocoError) -> int:
    """The HTTP status that this error is answered with; 500 for those that no client can mean."""
    return 500 if error.number is None else _STATUS.get(error.number, 500)


def detail_of(error: PyocoError) -> str:
    """What the client is told."""
    text = "" if error.number is None else _TEXT.get(error.number, "")
    return ": ".join(part for part in (text, str(error)) if part)


def answer_to(error: Exception, method: str, path: str) -> Answer:
    """What a request that failed with this is answered; a defect of ours is logged."""
    number = error.number if isinstance(error, PyocoError) else None
    if isinstance(error, PyocoError) and status_of(error) != 500:
        return problem(detail_of(error), number, status_of(error))
    _log.error("%s %s failed", method, path, exc_info=error)
    return problem(f"internal error: {type(error).__name__}; the log of the gateway says more", number, 500)


async def _on_error(error: Exception) -> Answer:
    return answer_to(error, request.method, request.path)


async def _on_http_exception(error: HTTPException) -> Answer:
    body, status, _ = problem(_described(error), _INVALID_REQUEST, error.code or 500)
    # the rest tells the client what to do, as Allow does with 405
    headers = {name: value for name, value in error.get_headers() if name.lower() != "content-type"}
    return body, status, headers


def _described(error: HTTPException) -> str:
    if error.code in (400, 422) and error.description:
        return f"{error.name.lower()}: {error.description}"
    return f"{error.name.lower()}: {request.method} {request.path}"


def _id(kind: str, number: int | None) -> str | None:
    return None if number is None else f"{kind}-PYOCO-{number:04d}"
