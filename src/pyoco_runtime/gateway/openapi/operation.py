"""One thing that the API can do, as a value."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from pyoco_runtime.gateway.openapi.refusal import Refusal
from pyoco_runtime.gateway.openapi.shape import Shape

JSON = "application/json"
FORM = "multipart/form-data"
EVENTS = "text/event-stream"


class Access(enum.Enum):
    """Who may ask when API keys are on."""

    OPEN = "everybody"
    KEY = "with an API key"
    ADMIN = "with an admin's API key"


@frozen(kw_only=True)
class Parameter:
    """Something that stands in the path, the query string or a header."""

    name: str
    place: str
    """path, query or header."""
    shape: Shape
    text: str
    example: Any = None
    """What the curl example has there; None leaves it out."""

    @property
    def is_required(self) -> bool:
        """A path has no holes; everything else may be left out."""
        return self.place == "path"


@frozen(kw_only=True)
class Body:
    """What is sent along."""

    shape: Shape
    example: Any
    media: str = JSON
    is_required: bool = True


@frozen
class Link:
    """Something in the answer that other operations take."""

    parameter: str
    pointer: str
    """A JSON pointer into the answer."""
    operations: tuple[str, ...]


@frozen(kw_only=True)
class Answer:
    """What comes back when all is well."""

    text: str
    shape: Shape
    example: Any = None
    media: str = JSON
    headers: Mapping[str, str] = field(factory=dict)
    """Headers that it may have, and what they say."""
    links: tuple[Link, ...] = ()


@frozen(kw_only=True)
class Operation:
    """A method on a path."""

    name: str
    method: str
    path: str
    title: str
    text: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answer: Answer
    refusals: tuple[Refusal, ...] = ()
    """All but those of a wrong key."""
    access: Access = Access.KEY


@frozen
class Group:
    """What belongs to one resource."""

    name: str
    text: str
    operations: tuple[Operation, ...]


def query(name: str, shape: Shape, text: str, example: Any = None) -> Parameter:
    """A parameter in the query string."""
    return Parameter(name=name, place="query", shape=shape, text=text, example=example)


def in_path(name: str, shape: Shape, text: str, example: Any) -> Parameter:
    """A part of the path."""
    return Parameter(name=name, place="path", shape=shape, text=text, example=example)


def whole(low: int, high: int, default: int | None = None) -> Shape:
    """A whole number in a range."""
    return {"type": "integer", "minimum": low, "maximum": high, **({} if default is None else {"default": default})}


TIMEOUT = query("timeout_sec", whole(1, 600, 600), "When the stream ends.", 30)
