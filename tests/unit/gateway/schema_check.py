"""As much of JSON Schema as our own document uses, so that tests can hold answers against it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
KEYWORDS = frozenset(
    {"$ref", "anyOf", "type", "enum", "properties", "required", "additionalProperties", "items", "description"}
    | {"default", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)


def faults(value: Any, schema: Schema, document: Schema, where: str = "$") -> Iterator[str]:
    """What is wrong with the value; nothing if it is as the schema says."""
    assert schema.keys() <= KEYWORDS, f"{where}: this check does not know all of {sorted(schema)}"
    if "$ref" in schema:
        yield from faults(value, resolved(schema, document), document, where)
    if "anyOf" in schema and all(any(faults(value, each, document, where)) for each in schema["anyOf"]):
        yield f"{where}: {value!r} is nothing of what is allowed"
    if "type" in schema and not _is_a(value, schema["type"]):
        yield f"{where}: {value!r} is not of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not one of {schema['enum']}"
    if isinstance(value, dict):
        yield from _faults_of_object(value, schema, document, where)
    if isinstance(value, list) and "items" in schema:
        for place, each in enumerate(value):
            yield from faults(each, schema["items"], document, f"{where}[{place}]")
    yield from _faults_of_size(value, schema, where)


def resolved(schema: Schema, document: Schema) -> Schema:
    """The schema that is meant."""
    if "$ref" not in schema:
        return schema
    found: Schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _faults_of_object(value: dict[str, Any], schema: Schema, document: Schema, where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, each in value.items():
        inner = known.get(name, schema.get("additionalProperties", {}))
        yield from faults(each, inner, document, f"{where}.{name}")


def _faults_of_size(value: Any, schema: Schema, where: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    size = value if isinstance(value, int | float) else len(value) if isinstance(value, str | list) else 0
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if not schema.get(low, size) <= size <= schema.get(high, size):
            yield f"{where}: {value!r} is out of its range"


def _is_a(value: Any, kinds: str | list[str]) -> bool:
    wanted = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in wanted
    return any(isinstance(value, _TYPES[each]) for each in wanted)
