"""The reference page of the HTTP API, made from it: python -m pyoco_runtime.gateway.openapi.reference_page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from textwrap import fill

from pyoco_runtime.gateway.openapi.page import Entry, Page, Row, Value, page_for
from pyoco_runtime.gateway.openapi.refusal import Refusal

INTRODUCTION = """\
# HTTP API

<!-- Made by `python -m pyoco_runtime.gateway.openapi.reference_page`; change the files beside that one instead. -->
"""
KEYS = """\
With `PYOCO_HTTP_AUTH_MODE=api_key` every route except `/health`, `/ready`, `/` and `/static/*` needs an API key in the
header `X-API-Key`, or in the one that `PYOCO_HTTP_API_KEY_HEADER` names. Without, nobody needs one, and the answers 401
and 403 below do not occur. What belongs to another tenant is answered as if it did not exist.

A running gateway shows this page, for its own settings, at `/docs`, and the same for programs at `/openapi.json`
(OpenAPI 3.1). [Errors](errors.md) lists all ids. The commands below want this to be set:
"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n\n".join(_parts(page_for("X-API-Key"))) + "\n"


def _parts(made: Page) -> Iterator[str]:
    yield INTRODUCTION.rstrip("\n")
    yield fill(made.text, 120, break_on_hyphens=False)
    yield KEYS.rstrip("\n")
    yield f"```sh\n{made.set_up}\n```"
    for group in made.groups:
        yield f"## {group.name}"
        yield group.text
        for each in group.entries:
            yield from _of_entry(each)
    yield "## Values"
    yield "Every field is there unless it says that it may be left out."
    for value in made.values:
        yield from _of_value(value)


def _of_entry(each: Entry) -> Iterator[str]:
    yield f"### {each.method.upper()} {each.path}"
    yield " ".join(part for part in (f"{each.title}.", each.text, each.access) if part)
    yield f"```sh\n{each.curl}\n```"
    if each.parameters:
        yield _table("parameter", each.parameters)
    if each.body_kind:
        spared = "" if each.is_body_required else " It may be left out."
        yield f"Body: `{each.body_media}`, {_linked(each.body_kind)}.{spared}"
        yield _table("field", each.body_fields)
    yield f"200: `{each.answer_media}`, {_linked(each.answer_kind)}. {each.answer_text}"
    if each.headers:
        yield _table("header", each.headers)
    if each.refusals:
        yield _refusals(each.refusals)


def _of_value(value: Value) -> Iterator[str]:
    yield f"### {value.name}"
    yield _table("field", value.fields) if value.fields else f"{_linked(value.kind)}."


def _table(what: str, rows: Iterable[Row]) -> str:
    head = f"| {what} | what is right | meaning |\n|---|---|---|"
    return "\n".join([head, *map(_row, rows)])


def _row(row: Row) -> str:
    kind = ", ".join(part for part in (_linked(row.kind), row.note) if part)
    return f"| `{row.name}` | {_cell(kind)} | {_cell(row.text)} |"


def _refusals(refusals: Iterable[Refusal]) -> str:
    lines = [f"| {each.status} | {each.err_id} | {_cell(each.when)} |" for each in refusals]
    return "\n".join(["| status | id | when |\n|---|---|---|", *lines])


def _linked(kind: str) -> str:
    """The names of values lead to them: they are the only words in camel case."""
    return re.sub(r"\b[A-Z][a-z]+([A-Z][a-z]+)*\b", lambda name: f"[{name[0]}](#{name[0].lower()})", kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
