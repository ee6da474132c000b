"""JSON Schema made from the values that requests and answers are made of, so that it cannot say anything else."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from attrs import fields, has

Shape = dict[str, Any]

_PLAIN: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def ref(name: str) -> Shape:
    """What the document says of this component."""
    return {"$ref": f"#/components/schemas/{name}"}


def choice(values: Iterable[str]) -> Shape:
    """One of these texts."""
    return {"type": "string", "enum": [str(each) for each in values]}


def or_null(shape: Shape) -> Shape:
    """This, or null."""
    if "enum" in shape:
        return {**shape, "type": [shape["type"], "null"], "enum": [*shape["enum"], None]}
    if isinstance(shape.get("type"), str):
        return {**shape, "type": [shape["type"], "null"]}
    return {"anyOf": [shape, {"type": "null"}]} if shape else {}


def object_of(properties: Mapping[str, Shape], optional: Iterable[str] = ()) -> Shape:
    """An object with these fields; all of them are there but the optional ones, and others may be."""
    spared = frozenset(optional)
    required = [name for name in properties if name not in spared]
    return {"type": "object", "properties": dict(properties), **({"required": required} if required else {})}


def fields_of(kind: type, names: Mapping[type, str]) -> dict[str, Shape]:
    """The fields of a value as they are written; `extra` is no field but room for those of other writers.

    `names` has the components that stand for values within it.
    """
    hints = get_type_hints(kind)
    return {each.name: shape_of(hints[each.name], names) for each in fields(kind) if each.name != "extra"}


def shape_of(hint: Any, names: Mapping[type, str]) -> Shape:
    """The shape of one type."""
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if get_origin(hint) in (Union, types.UnionType):
        return _union(get_args(hint), names)
    if get_origin(hint) is tuple:
        return {"type": "array", "items": shape_of(get_args(hint)[0], names)}
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        inner = shape_of(get_args(hint)[1], names)
        return {"type": "object", **({"additionalProperties": inner} if inner else {})}
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return choice(hint)
    if has(hint):
        return ref(names[hint])
    raise TypeError(f"no shape for {hint}")


def _union(members: tuple[Any, ...], names: Mapping[type, str]) -> Shape:
    (kind,) = (each for each in members if each is not type(None))
    return or_null(shape_of(kind, names))
