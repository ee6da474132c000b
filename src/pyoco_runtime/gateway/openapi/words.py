"""A schema in words."""

from __future__ import annotations

from pyoco_runtime.gateway.openapi.shape import Shape

_PLAIN = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}


def words(shape: Shape) -> str:
    """What is allowed there; names of schemas stand as they are."""
    kinds = shape.get("type")
    if isinstance(kinds, list):
        inner = words({**shape, "type": kinds[0], "enum": [each for each in shape.get("enum", ()) if each is not None]})
        return f"{inner} or null"
    if "$ref" in shape:
        return str(shape["$ref"]).rpartition("/")[2]
    if "anyOf" in shape:
        return " or ".join(words(each) for each in shape["anyOf"])
    if shape.get("enum"):
        return ", ".join(map(str, shape["enum"]))
    if kinds == "array":
        return f"list{_number(shape)} of {words(shape['items'])}"
    if kinds == "object":
        values = shape.get("additionalProperties")
        return f"object of {words(values)}" if values else "object"
    if shape.get("format") == "binary":
        return "file"
    return _PLAIN.get(str(kinds), "anything") + _range(shape) + _length(shape)


def _range(shape: Shape) -> str:
    if "maximum" in shape:
        return f" from {shape['minimum']:,} to {shape['maximum']:,}"
    return f" from {shape['minimum']:,}" if "minimum" in shape else ""


def _length(shape: Shape) -> str:
    low, high = shape.get("minLength", 0), shape.get("maxLength")
    if high is None:
        return ""
    return f", {low:,} to {high:,} characters" if low else f", at most {high:,} characters"


def _number(shape: Shape) -> str:
    low, high = shape.get("minItems", 0), shape.get("maxItems")
    return "" if high is None else f" ({low:,} to {high:,})"
