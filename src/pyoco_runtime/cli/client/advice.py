"""What the person at the keyboard is told when a command fails: what happened, and what to do next."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from pyoco_runtime.client.errors import GatewayRefused, GatewayUnreachable, NotAGateway
from pyoco_runtime.errors import PyocoError
from pyoco_runtime.messages import Language, language, text
from pyoco_runtime.messages.catalogue import messages

_NEXT: Mapping[int, int] = {
    1: 101,
    2: 102,
    3: 103,
    5: 104,
    14: 105,
    15: 106,
    17: 102,
    19: 102,
    20: 107,
    21: 108,
    22: 109,
    23: 109,
    33: 113,
    36: 114,
    39: 115,
    41: 116,
}
"""The message with the next step, by the number of the error."""

_INVALID_REQUEST, _CANCEL_TIMEOUT = 2, 21
_BY_STATUS: Mapping[int, int] = {401: 14, 403: 15, 409: 22, 503: 3}
"""What a status means where the gateway names no error: the published one does not always."""

_OURS = ("/runs/batch", "/runs/watch", "/dlq", "/actors")


def advice(error: PyocoError | TimeoutError, args: argparse.Namespace) -> list[str]:
    """The lines for stderr: the error with its id, and the next step if there is a good one."""
    lang = language()
    number = number_of(error)
    first = f"[pyoco-client][ERR-PYOCO-{number:04d}] {_what(error, number, lang)}"
    step = _step(error, number)
    if step is None:
        return [first]
    return [first, text(f"MSG-PYOCO-{step:04d}", lang, command=args.command, server=shown(args.server))]


def number_of(error: PyocoError | TimeoutError) -> int:
    """The number of the error; for a refusal that of the gateway, or what its status means."""
    match error:
        case GatewayRefused(err_id=str() as err_id) if err_id.rpartition("-")[2].isdigit():
            return int(err_id.rpartition("-")[2])
        case GatewayRefused() if _is_unknown_there(error):
            return _INVALID_REQUEST
        case GatewayRefused(status=404):
            return _missing(error.request.url.path)
        case GatewayRefused():
            return _BY_STATUS.get(error.status, _INVALID_REQUEST)
        case PyocoError(number=int() as number):
            return number
        case _:
            return _CANCEL_TIMEOUT


def _step(error: PyocoError | TimeoutError, number: int) -> int | None:
    if isinstance(error, NotAGateway):
        return 112
    if isinstance(error, GatewayRefused) and _is_unknown_there(error):
        return 117
    return _NEXT.get(number)


def _is_unknown_there(error: GatewayRefused) -> bool:
    """The published gateway does not have the routes that are ours, and says so without an id."""
    path = error.request.url.path
    return error.status in (404, 405) and error.err_id is None and path.startswith(_OURS)


def shown(server: str) -> str:
    """The address without a password."""
    head, mark, tail = server.rpartition("@")
    return f"{head.partition('://')[0]}://***@{tail}" if mark else server


def _missing(path: str) -> int:
    """What a 404 without an id is about."""
    return {"runs": 5, "workers": 20, "wheels": 23, "dlq": 36, "actors": 33}.get(path.strip("/").partition("/")[0], 2)


def _what(error: PyocoError | TimeoutError, number: int, lang: Language) -> str:
    if isinstance(error, GatewayRefused):
        return _translated(_detail(error), number, lang)
    if isinstance(error, GatewayUnreachable):
        return _translated(str(error), number, lang)
    return str(error) or text(f"MSG-PYOCO-{number:04d}", lang)


def _translated(detail: str, number: int, lang: Language) -> str:
    """The gateway speaks English; others get the meaning first, in their language."""
    meaning = messages(lang).get(f"MSG-PYOCO-{number:04d}", "")
    if lang == "en" or not meaning:
        return detail or meaning
    return f"{meaning} ({detail})" if detail else meaning


def _detail(error: GatewayRefused) -> str:
    if isinstance(error.detail, Mapping) and "missing" in error.detail:
        return "; ".join(str(each) for each in error.detail["missing"])
    return str(error.detail)
