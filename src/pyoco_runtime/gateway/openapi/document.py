"""The OpenAPI 3.1 document."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version
from itertools import groupby
from typing import Any

from pyoco_runtime.gateway.openapi import refusal
from pyoco_runtime.gateway.openapi.components import components
from pyoco_runtime.gateway.openapi.house import HOUSE
from pyoco_runtime.gateway.openapi.letters import LETTERS
from pyoco_runtime.gateway.openapi.operation import JSON, Access, Body, Group, Link, Operation, Parameter
from pyoco_runtime.gateway.openapi.refusal import Refusal
from pyoco_runtime.gateway.openapi.runs import RUNS
from pyoco_runtime.gateway.openapi.shape import Shape, ref
from pyoco_runtime.gateway.openapi.wheels import WHEELS
from pyoco_runtime.gateway.openapi.workers import WORKERS

GROUPS: tuple[Group, ...] = (RUNS, WORKERS, WHEELS, LETTERS, HOUSE)
SCHEME = "apiKey"
TITLE = "pyoco-runtime"
INTRODUCTION = (
    "Runs Pyoco flows on many machines. Times are unix seconds. A parameter that is empty counts as left out, and of "
    "one that is repeated the last counts. Readers ignore fields that they do not know: there may be more. "
    'Every error is `{"detail": ..., "err_id": "ERR-PYOCO-....", "msg_id": "MSG-PYOCO-...."}`.'
)


def document(api_key_header: str | None) -> dict[str, Any]:
    """The whole document; without a header, that of a gateway with API keys off."""
    paths: dict[str, Any] = {}
    for group, operation in every_operation():
        paths.setdefault(operation.path, {})[operation.method] = _operation(group, operation, api_key_header)
    schemes = {SCHEME: {"type": "apiKey", "in": "header", "name": api_key_header}} if api_key_header else None
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version("pyoco-runtime"), "description": INTRODUCTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": group.name, "description": group.text} for group in GROUPS],
        "paths": paths,
        "components": {"schemas": components(), **({"securitySchemes": schemes} if schemes else {})},
    }


def every_operation() -> Iterator[tuple[Group, Operation]]:
    """All operations in their order, each with its group."""
    return ((group, operation) for group in GROUPS for operation in group.operations)


def refusals_of(operation: Operation, has_keys: bool) -> list[Refusal]:
    """How this operation says no, by status."""
    found = list(operation.refusals)
    if has_keys and operation.access is not Access.OPEN:
        found += [refusal.NO_KEY, refusal.WRONG_KEY, refusal.BUSY]
        # a key is looked up in NATS
        found += [] if refusal.NO_NATS in found else [refusal.NO_NATS]
    if has_keys and operation.access is Access.ADMIN:
        found.append(refusal.NO_ADMIN)
    return sorted(found, key=lambda each: (each.status, each.number))


def _operation(group: Group, operation: Operation, api_key_header: str | None) -> dict[str, Any]:
    has_keys = api_key_header is not None
    made: dict[str, Any] = {"operationId": operation.name, "tags": [group.name], "summary": operation.title}
    if operation.text:
        made["description"] = operation.text
    if operation.parameters:
        made["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.body:
        made["requestBody"] = _body(operation.body)
    made["responses"] = {"200": _answer(operation), **_refused(refusals_of(operation, has_keys))}
    if has_keys and operation.access is not Access.OPEN:
        made["security"] = [{SCHEME: []}]
    return made


def _parameter(parameter: Parameter) -> dict[str, Any]:
    made = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": parameter.shape,
    }
    return made if parameter.example is None else {**made, "example": parameter.example}


def _body(body: Body) -> dict[str, Any]:
    return {"required": body.is_required, "content": _content(body.media, body.shape, body.example)}


def _answer(operation: Operation) -> dict[str, Any]:
    answer = operation.answer
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()}
    links = {name: _link(link, name) for link in answer.links for name in link.operations}
    made = {"description": answer.text, "content": _content(answer.media, answer.shape, answer.example)}
    return {**made, **({"headers": headers} if headers else {}), **({"links": links} if links else {})}


def _link(link: Link, operation: str) -> dict[str, Any]:
    return {"operationId": operation, "parameters": {link.parameter: f"$response.body#{link.pointer}"}}


def _content(media: str, shape: Shape, example: Any) -> dict[str, Any]:
    return {media: {"schema": shape} if example is None else {"schema": shape, "example": example}}


def _refused(refusals: list[Refusal]) -> dict[str, Any]:
    """One response for each status; it names all ids that come with it."""
    made = {}
    for status, group in groupby(refusals, key=lambda each: each.status):
        each_of = list(group)
        text = " ".join(f"{each.err_id}: {each.when}" for each in each_of)
        shape = {**ref("Problem"), "properties": {"err_id": {"enum": [each.err_id for each in each_of]}}}
        examples = {each.err_id: {"summary": each.when, "value": problem_of(each)} for each in each_of}
        content = {JSON: {"schema": shape, "examples": examples}}
        made[str(status)] = {"description": f"{HTTPStatus(status).phrase}. {text}", "content": content}
    return made


def problem_of(refused: Refusal) -> dict[str, Any]:
    """The body of such an answer."""
    msg_id = refused.err_id.replace("ERR", "MSG")
    return {"detail": refused.detail, "err_id": refused.err_id, "msg_id": msg_id}
