"""The description of the API: complete, in itself consistent, and the same for programs, people and readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from quart import Quart

from pyoco_runtime.gateway.app import create_app, create_gateway_app
from pyoco_runtime.gateway.openapi import reference_page
from pyoco_runtime.gateway.openapi.document import document, every_operation, problem_of, refusals_of
from pyoco_runtime.gateway.openapi.operation import Access
from pyoco_runtime.gateway.routes.openapi import openapi_routes
from pyoco_runtime.gateway.run_view import summary
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_summary import Summarizer
from tests.unit.gateway.schema_check import faults
from tests.unit.gateway.support import Office, on_asyncio

REPOSITORY = Path(__file__).parents[3]
HEADER = "X-Test-Key"
DOCUMENT = document(HEADER)
OPERATIONS = [operation for _, operation in every_operation()]
NOT_DESCRIBED = ("/static/",)
"""The dashboard, which is for people."""


class Well:
    """A health view that lacks nothing."""

    def missing(self) -> tuple[str, ...]:
        return ()


def routes_of(app: Quart) -> set[tuple[str, str]]:
    """Every method and path, in the words of OpenAPI."""
    return {
        (method.lower(), re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule != "/" and not rule.rule.startswith(NOT_DESCRIBED)
    }


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """All objects within."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def get(path: str, header: str | None = HEADER) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one of the two routes."""

    async def main() -> tuple[int, dict[str, str], str]:
        answer = await create_app(Well(), [openapi_routes(header)]).test_client().get(path)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status_code, headers, await answer.get_data(as_text=True)

    return anyio.run(main)


@on_asyncio
async def test_every_route_is_described_and_every_description_has_its_route() -> None:
    """Whoever adds a route describes it in gateway/openapi/."""
    described = {(operation.method, operation.path) for operation in OPERATIONS}
    assert routes_of(create_gateway_app(Office().parts)) == described


def test_every_operation_is_in_the_document_once() -> None:
    """Names are how programs call them."""
    names = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert sorted(names) == sorted({operation.name for operation in OPERATIONS})


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    """Nothing dangles on either side."""
    used = {found["$ref"].rpartition("/")[2] for found in walk(DOCUMENT) if isinstance(found.get("$ref"), str)}
    assert used == DOCUMENT["components"]["schemas"].keys()


def test_every_link_names_an_operation_and_one_of_its_parameters() -> None:
    """What an answer holds can be passed on."""
    takes = {operation.name: {each.name for each in operation.parameters} for operation in OPERATIONS}
    for operation in OPERATIONS:
        for link in operation.answer.links:
            assert all(link.parameter in takes[name] for name in link.operations), operation.name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_path_names_exactly_its_parameters(operation: Any) -> None:
    """No hole in a path is unexplained."""
    holes = re.findall(r"{(\w+)}", operation.path)
    assert holes == [each.name for each in operation.parameters if each.place == "path"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_example_is_as_its_schema_says(operation: Any) -> None:
    """People copy them."""
    answer, body = operation.answer, operation.body
    if isinstance(answer.example, dict | list):
        assert list(faults(answer.example, answer.shape, DOCUMENT)) == []
    if body is not None and operation.name != "submitBatch":  # whose example has an item that is wrong
        example = {"wheel": "", **body.example} if "wheel" in body.example else body.example
        assert list(faults(example, body.shape, DOCUMENT)) == []
    for each in operation.parameters:
        if each.example is not None:
            assert list(faults(each.example, each.shape, DOCUMENT)) == []
    for refused in refusals_of(operation, has_keys=True):
        schema = DOCUMENT["paths"][operation.path][operation.method]["responses"][str(refused.status)]
        assert list(faults(problem_of(refused), schema["content"]["application/json"]["schema"], DOCUMENT)) == []


def test_every_field_of_every_schema_says_what_it_means() -> None:
    """Types alone explain nothing."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for field, inner in schema.get("properties", {}).items():
            assert inner["description"], f"{name}.{field}"


def test_a_summary_has_exactly_the_fields_that_are_described() -> None:
    """It is written by hand, so its schema could drift away."""
    run = RunSnapshot(run_id="r", flow_name="f", status=RunStatus.PENDING)
    shown = summary(Summarizer().summary_of(run, 1))
    assert shown.keys() == DOCUMENT["components"]["schemas"]["RunSummary"]["properties"].keys()


def test_with_keys_everything_but_health_needs_one() -> None:
    """The document says the same as the gate."""
    is_open = {operation.path for operation in OPERATIONS if operation.access is Access.OPEN}
    assert is_open == {"/health", "/ready"}
    for operation in OPERATIONS:
        described = DOCUMENT["paths"][operation.path][operation.method]
        assert ("security" in described) is ("401" in described["responses"]) is (operation.path not in is_open)
    assert DOCUMENT["components"]["securitySchemes"]["apiKey"]["name"] == HEADER


def test_without_keys_nothing_is_said_of_them() -> None:
    """A gateway describes itself as it is."""
    described = document(None)
    assert "securitySchemes" not in described["components"]
    assert not any("security" in found or "401" in found for found in walk(described["paths"]))


def test_programs_get_the_document() -> None:
    """GET /openapi.json."""
    status, headers, text = get("/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert text.startswith('{"openapi":"3.1.0"')


def test_people_get_a_page_that_needs_nothing_else() -> None:
    """No script, nothing from elsewhere, and a policy that allows no more than its own style."""
    status, headers, text = get("/docs")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert not re.search(r"<script|<link|<img|<iframe|\son\w+=|\sstyle=|@import|url\(", text)
    assert all(target.startswith(("#", "openapi.json")) for target in re.findall(r'href="([^"]*)"', text))
    anchors = set(re.findall(r'id="([^"]*)"', text))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= anchors
    assert {operation.name for operation in OPERATIONS} <= anchors


@pytest.mark.parametrize("header", [None, HEADER])
def test_the_commands_carry_a_key_only_where_one_is_needed(header: str | None) -> None:
    """What is copied works."""
    _, _, text = get("/docs", header)
    commands = re.findall(r"<pre>(curl [^<]*)</pre>", text)
    assert len(commands) == len(OPERATIONS)
    keyed = sum("$KEY" in command for command in commands)
    assert keyed == (0 if header is None else len(OPERATIONS) - 2)


def test_the_name_of_the_header_cannot_break_the_page() -> None:
    """It comes from the settings; the page escapes it all the same."""
    _, _, text = get("/docs", "<b>&")
    assert "<b>" not in text


def test_the_reference_page_is_current() -> None:
    """Run python -m pyoco_runtime.gateway.openapi.reference_page > docs/reference/http-api.md after a change."""
    page = (REPOSITORY / "docs/reference/http-api.md").read_text(encoding="utf-8")
    assert page == reference_page.page()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Accepted", {"run_id": "r"}),
        ("Accepted", {"run_id": 1, "status": "PENDING"}),
        ("Accepted", {"run_id": "r", "status": "DONE"}),
        ("Submission", {"flow_name": ""}),
        ("Submission", {"flow_name": "f", "tag": "a.b"}),
        ("Batch", {"runs": []}),
        ("RunOrSummary", {}),
        ("WorkerHidden", {"worker_id": "w", "hidden": 1, "updated_at": True}),
    ],
)
def test_the_check_of_these_tests_finds_what_is_wrong(name: str, value: object) -> None:
    """One that finds nothing would let everything pass."""
    assert list(faults(value, {"$ref": f"#/components/schemas/{name}"}, DOCUMENT))
