"""What a page about the API shows, whatever it is written in."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from pyoco_runtime.gateway.openapi.components import components
from pyoco_runtime.gateway.openapi.curl import curl, set_up
from pyoco_runtime.gateway.openapi.document import GROUPS, INTRODUCTION, TITLE, refusals_of
from pyoco_runtime.gateway.openapi.operation import Access, Body, Group, Operation, Parameter
from pyoco_runtime.gateway.openapi.refusal import Refusal
from pyoco_runtime.gateway.openapi.shape import Shape
from pyoco_runtime.gateway.openapi.words import words

SPARED = "may be left out"


@frozen
class Row:
    """A name, what is allowed there, and what it means."""

    name: str
    kind: str
    note: str
    text: str


@frozen(kw_only=True)
class Entry:
    """An operation."""

    name: str
    method: str
    path: str
    title: str
    text: str
    access: str
    curl: str
    parameters: tuple[Row, ...]
    body_media: str
    body_kind: str
    body_fields: tuple[Row, ...]
    is_body_required: bool
    answer_media: str
    answer_kind: str
    answer_text: str
    headers: tuple[Row, ...]
    example: str
    refusals: tuple[Refusal, ...]


@frozen
class Chapter:
    """A group of operations."""

    name: str
    anchor: str
    text: str
    entries: tuple[Entry, ...]


@frozen
class Value:
    """A named schema."""

    name: str
    kind: str
    fields: tuple[Row, ...]


@frozen(kw_only=True)
class Page:
    """The whole of it."""

    title: str
    text: str
    about_keys: str
    has_keys: bool
    set_up: str
    groups: tuple[Chapter, ...]
    values: tuple[Value, ...]


def page_for(api_key_header: str | None) -> Page:
    """The page of a gateway that takes API keys in this header; None is one with API keys off."""
    about_keys = "API keys are off."
    if api_key_header:
        about_keys = f"The header `{api_key_header}` carries the API key."
    return Page(
        title=TITLE,
        text=INTRODUCTION,
        about_keys=about_keys,
        has_keys=api_key_header is not None,
        set_up=set_up(api_key_header),
        groups=tuple(_chapter(group, api_key_header) for group in GROUPS),
        values=tuple(Value(name, words(shape), _fields(shape)) for name, shape in components().items()),
    )


def _chapter(group: Group, api_key_header: str | None) -> Chapter:
    entries = tuple(_entry(each, api_key_header) for each in group.operations)
    return Chapter(group.name, group.name.lower().replace(" ", "-"), group.text, entries)


def _entry(operation: Operation, api_key_header: str | None) -> Entry:
    body, answer = operation.body, operation.answer
    return Entry(
        name=operation.name,
        method=operation.method,
        path=operation.path,
        title=operation.title,
        text=operation.text,
        access=_access(operation.access),
        curl=curl(operation, api_key_header),
        parameters=tuple(map(_parameter, operation.parameters)),
        body_media=body.media if body else "",
        body_kind=words(body.shape) if body else "",
        body_fields=_fields(_named(body.shape)) if body else (),
        is_body_required=_is_required(body),
        answer_media=answer.media,
        answer_kind=words(answer.shape),
        answer_text=answer.text,
        headers=tuple(Row(name, "header", "not always", text) for name, text in answer.headers.items()),
        example=_example(answer.example),
        refusals=tuple(refusals_of(operation, api_key_header is not None)),
    )


def _access(access: Access) -> str:
    match access:
        case Access.OPEN:
            return "Needs no API key."
        case Access.KEY:
            return "Needs an API key."
        case Access.ADMIN:
            return "Needs an API key of an admin."


def _parameter(parameter: Parameter) -> Row:
    default = parameter.shape.get("default")
    note = parameter.place if default is None else f"{parameter.place}, default {json.dumps(default)}"
    return Row(parameter.name, words(parameter.shape), note, parameter.text)


def _fields(shape: Shape) -> tuple[Row, ...]:
    required = shape.get("required", ())
    return tuple(
        Row(name, words(inner), "" if name in required else SPARED, str(inner.get("description", "")))
        for name, inner in shape.get("properties", {}).items()
    )


def _named(shape: Shape) -> Shape:
    return components()[words(shape)] if "$ref" in shape else shape


def _is_required(body: Body | None) -> bool:
    return body is not None and body.is_required


def _example(example: Any) -> str:
    if example is None or isinstance(example, str):
        return example or ""
    return json.dumps(example, indent=2)
