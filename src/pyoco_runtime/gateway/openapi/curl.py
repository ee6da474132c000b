"""An operation as a command line that can be tried."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote, urlencode

from pyoco_runtime.gateway.openapi.operation import EVENTS, FORM, Access, Body, Operation

FILES = {"workflow": "@flow.yaml", "wheel": "@demo-1.0-py3-none-any.whl"}


def set_up(api_key_header: str | None) -> str:
    """What all commands want to be set."""
    key = "\nKEY=pyoco_..." if api_key_header else ""
    return f"PYOCO=http://127.0.0.1:8000{key}"


def curl(operation: Operation, api_key_header: str | None) -> str:
    """The command."""
    words = ["curl"]
    if operation.answer.media == EVENTS:
        words.append("-N")
    if operation.answer.media == "application/octet-stream":
        words.append("-OJ")
    if operation.method != "get" and not (operation.method == "post" and operation.body):
        words.append(f"-X {operation.method.upper()}")
    words.append(_url(operation))
    if api_key_header and operation.access is not Access.OPEN:
        words.append(f'-H "{api_key_header}: $KEY"')
    if operation.body:
        words += _body(operation.body)
    return " ".join(words)


def _url(operation: Operation) -> str:
    path = operation.path
    asked = []
    for each in operation.parameters:
        if each.example is None:
            continue
        if each.place == "path":
            path = path.replace(f"{{{each.name}}}", quote(str(each.example), safe="/"))
        elif each.place == "query":
            asked.append((each.name, each.example))
    return f'"$PYOCO{path}?{urlencode(asked)}"' if asked else f"$PYOCO{path}"


def _body(body: Body) -> list[str]:
    if body.media != FORM:
        return ["-H content-type:application/json", "-d " + shlex.quote(json.dumps(body.example))]
    return [f"-F {name}={FILES.get(name, value)}" for name, value in body.example.items()]
