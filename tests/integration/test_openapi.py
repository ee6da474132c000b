"""The description of the API held against a real gateway: hypothesis makes requests from it, right and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from attrs import field, frozen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyoco_runtime.gateway.openapi.document import document, every_operation
from pyoco_runtime.gateway.openapi.examples import FLOW_YAML
from pyoco_runtime.gateway.openapi.operation import EVENTS, FORM, Access, Body, Operation, Parameter
from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import Gateway, client_of, gateway, good, make_keys, until
from tests.integration.worker_client import worker
from tests.unit.gateway.schema_check import Schema, faults, resolved

OPERATIONS = [operation for _, operation in every_operation()]
KEYED = [operation for operation in OPERATIONS if operation.access is not Access.OPEN]
DOCUMENT = document("X-API-Key")
WHEELS = ("demo-1.0-py3-none-any.whl", "demo-1.1-py3-none-any.whl", "other-2-py3-none-any.whl", "demo.whl", "../x.whl")
SAMPLED = settings(
    max_examples=25,  # per operation; schemathesis did thousands, by hand
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # an answer depends on what is stored: shrinking would mislead
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@frozen
class House:
    """A gateway, and ids of what is stored behind it."""

    gateway: Gateway
    known: dict[str, list[str]]


@frozen(kw_only=True)
class Request:
    """What is sent."""

    method: str
    path: str
    params: list[tuple[str, str]]
    headers: dict[str, str]
    content: dict[str, Any] = field(factory=dict)
    """What httpx takes for the body."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway without API keys and a worker, one run that went well and one that became a dead letter."""
    place = tmp_path_factory.mktemp("openapi")
    with nats_server(place / "store") as nats, worker(place, nats.url, name="w1"), gateway(place, nats.url) as one:
        runs = [one.submit("hello"), one.submit("no-such-flow")]
        letters = until(lambda: good(one.http.get("/dlq"))["items"], bool)
        until(lambda: good(one.http.get("/workers")), bool)
        files = {"wheel": (WHEELS[0], b"wheel")}
        good(one.http.post("/wheels", files=files))
        seqs = [str(letter["seq"]) for letter in letters]
        yield House(one, {"run_id": runs, "seq": seqs, "worker_id": ["w1"], "name": [WHEELS[0]], "process": ["g1"]})


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, str, str]]:
    """A gateway with API keys, an admin's key and somebody's."""
    place = tmp_path_factory.mktemp("locked")
    with nats_server(place / "store") as nats, gateway(place, nats.url, PYOCO_HTTP_AUTH_MODE="api_key") as one:
        (admin,) = make_keys(nats.url, "house", admin=True)
        (plain,) = make_keys(nats.url, "t1")
        until(lambda: one.http.get("/ready").status_code, lambda status: status == 200)
        yield one, admin.plain, plain.plain


# -- requests from the document ---------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=40).filter(lambda text: text not in (".", ".."))  # those change the path itself
HEADER_TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def right(schema: Schema) -> st.SearchStrategy[Any]:
    """Values as the schema says."""
    schema = resolved(schema, DOCUMENT)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return st.none() | right({**schema, "type": kinds[0]})
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match kinds:
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(right(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
        case "object" if "properties" in schema:
            fields = {name: right(each) for name, each in schema["properties"].items()}
            required = {name: fields.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional=fields)
        case "object":
            return st.dictionaries(st.text(max_size=8), ANY_JSON, max_size=3)
        case _ if "pattern" in schema:
            return st.from_regex(str(schema["pattern"]), fullmatch=True).filter(lambda text: text.isprintable())
        case _:
            return st.text(max_size=40)


def one_parameter(parameter: Parameter, known: dict[str, list[str]]) -> st.SearchStrategy[list[str]]:
    """What stands there: right, known, or anything; nothing, if it may be left out."""
    shape = parameter.shape
    if parameter.place == "path":
        found = known.get(parameter.name, [])
        anything = NAMES if shape["type"] == "string" else NAMES | right(shape).map(str)
        return (st.sampled_from(found) | anything if found else anything).map(lambda text: [text])
    if parameter.place == "header":
        return st.just([]) | HEADER_TEXT.map(lambda text: [text])
    if parameter.name == "timeout_sec":
        return st.sampled_from([["1"], ["0"], ["601"], ["x"], []])
    single = shape["items"] if shape["type"] == "array" else shape
    written = right(single).map(lambda value: value if isinstance(value, str) else json.dumps(value))
    return st.just([]) | written.map(lambda text: [text]) | st.lists(st.text(max_size=20), min_size=1, max_size=2)


def a_body(body: Body) -> st.SearchStrategy[dict[str, Any]]:
    """A body that is right, one that is JSON at least, or bytes; none at all too."""
    if body.media == FORM:
        return a_form(body)
    as_said = right(body.shape).map(json.dumps)
    content = as_said | as_said | ANY_JSON.map(json.dumps) | st.binary(max_size=30)
    return content.map(lambda data: {"content": data}) | st.just({})


def a_form(body: Body) -> st.SearchStrategy[dict[str, Any]]:
    """A form with its file, mostly."""
    name = "wheel" if "wheel" in body.shape["properties"] else "workflow"
    data = st.sampled_from([FLOW_YAML.encode(), b"flow: {graph: a >> }", b"", b"[" * 2000]) | st.binary(max_size=200)
    file = st.tuples(st.sampled_from(WHEELS), data).map(lambda each: {name: each})
    fields = {key: right(each).map(str) for key, each in body.shape["properties"].items() if key != name}
    form = st.fixed_dictionaries({}, optional={key: value | st.text(max_size=20) for key, value in fields.items()})
    return st.builds(lambda files, data: {"files": files, "data": data}, file, form) | st.just({"content": b"x"})


@st.composite
def requests(draw: st.DrawFn, operation: Operation, known: dict[str, list[str]]) -> Request:
    """One request for this operation."""
    path = operation.path
    params: list[tuple[str, str]] = []
    headers: dict[str, str] = {}
    for each in operation.parameters:
        values = draw(one_parameter(each, known))
        if each.place == "path":
            path = path.replace(f"{{{each.name}}}", quote(values[0], safe=""))
        elif each.place == "query":
            params += [(each.name, value) for value in values]
        else:
            headers |= dict.fromkeys([each.name] * len(values), "".join(values))
    content = draw(a_body(operation.body)) if operation.body else {}
    return Request(method=operation.method, path=path, params=params, headers=headers, content=content)


# -- answers against the document -------------------------------------------------------------------------------------


def send(http: httpx.Client, request: Request) -> httpx.Response:
    """The answer; of a stream only its beginning, which is where a status is."""
    build = http.build_request(
        request.method,
        request.path,
        params=tuple(request.params),
        headers=request.headers,
        **request.content,
    )
    answer = http.send(build, stream=True)
    try:
        if not answer.headers["content-type"].startswith(EVENTS):
            answer.read()
    finally:
        answer.close()
    return answer


def check(operation: Operation, answer: httpx.Response) -> None:
    """The status is described, and the answer is as it is described."""
    asked = f"{answer.request.method} {answer.request.url} {answer.status_code}"
    assert answer.status_code < 500, f"{asked}: {answer.text}"
    described = DOCUMENT["paths"][operation.path][operation.method]["responses"]
    assert str(answer.status_code) in described, f"{asked} is not described: {answer.text}"
    ((media, content),) = described[str(answer.status_code)]["content"].items()
    assert answer.headers["content-type"].partition(";")[0] == media, asked
    if media == "application/json":
        assert list(faults(answer.json(), content["schema"], DOCUMENT)) == [], asked


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@SAMPLED
@given(data=st.data())
def test_whatever_is_asked_the_answer_is_described(house: House, operation: Operation, data: st.DataObject) -> None:
    """No 5xx, no status that is not in the document, every JSON body as its schema says, every error with its id."""
    check(operation, send(house.gateway.http, data.draw(requests(operation, house.known))))


@pytest.mark.parametrize(
    ("path", "status"),
    [("/runs", 200), ("/runs?updated_after=0", 200), ("/runs?include=full", 200), ("/runs?limit=0", 422)],
)
def test_lists_of_runs_are_as_described(house: House, path: str, status: int) -> None:
    """As a list, as a page, with summaries and with whole runs."""
    answer = house.gateway.http.get(path)
    assert answer.status_code == status
    check(next(each for each in OPERATIONS if each.name == "listRuns"), answer)


def test_a_run_with_all_its_records_is_as_described(house: House) -> None:
    """What a real worker wrote passes the schema too."""
    run_id = house.known["run_id"][0]
    until(lambda: house.gateway.get(run_id)["status"], lambda status: status == "COMPLETED")
    for name, path in (("readRun", f"/runs/{run_id}?include=all"), ("readTasks", f"/runs/{run_id}/tasks")):
        answer = house.gateway.http.get(path)
        assert good(answer)["task_records"]
        check(next(each for each in OPERATIONS if each.name == name), answer)


def example(operation: Operation) -> Request:
    """The request of the curl example, without its files."""
    path = operation.path
    for each in operation.parameters:
        if each.place == "path":
            path = path.replace(f"{{{each.name}}}", str(each.example))
    params = [("timeout_sec", "1")] if operation.answer.media == EVENTS else []
    return Request(method=operation.method, path=path, params=params, headers={})


@pytest.mark.parametrize("operation", KEYED, ids=lambda operation: operation.name)
def test_with_api_keys_every_refusal_is_as_described(locked: tuple[Gateway, str, str], operation: Operation) -> None:
    """No key is 401, a wrong one 403, and what is for admins is 403 for others; a right key is let in."""
    one, admin, plain = locked
    is_for_admins = operation.access is Access.ADMIN
    found = {}
    for who, key in {
        "nobody": None,
        "stranger": "pyoco_unknown1.0123456789abcdef",
        "t1": plain,
        "admin": admin,
    }.items():
        with client_of(one.url, **({} if key is None else {"X-API-Key": key})) as http:
            answer = send(http, example(operation))
        check(operation, answer)
        found[who] = answer.status_code
    assert (found["nobody"], found["stranger"], found["t1"] == 403) == (401, 403, is_for_admins), found
    assert found["admin"] not in (401, 403), found
