"""POST /runs/yaml."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import anyio
import pytest

from tests.unit.gateway.support import YAML_MAX_BYTES, Answer, Office, on_asyncio

Part = tuple[str, str | None, bytes]
YAML = b"""version: 1
flow:
  graph: a >> b
  defaults:
    x: 1
    words: [one, two]
tasks:
  a: {callable: "m:f"}
  b: {callable: "m:g"}
"""


def form(parts: Sequence[Part]) -> bytes:
    body = b""
    for name, file_name, data in parts:
        named = f'; filename="{file_name}"' if file_name is not None else ""
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + data + b"\r\n"
    return body + b"--edge--\r\n"


def parts(workflow: bytes = YAML, **fields: str) -> list[Part]:
    return [("workflow", "flow.yaml", workflow), *((name, None, text.encode()) for name, text in fields.items())]


async def upload(office: Office, *found: Part, body: bytes | None = None, **headers: str) -> Answer:
    client = office.client.with_headers(**{"Content_Type": "multipart/form-data; boundary=edge", **headers})
    return await client.ask("POST", "/runs/yaml", form(found) if body is None else body)


@pytest.mark.parametrize("is_first", [True, False])
@on_asyncio
async def test_the_job_carries_the_text_and_the_snapshot_does_not(is_first: bool) -> None:
    """The snapshot has its digest and size; the params are the defaults of the file."""
    async with Office().open() as office:
        found = parts(flow_name="hello", tag="gpu")
        answer = await upload(office, *(found if is_first else reversed(found)))
        assert (answer.status, answer.json["status"]) == (200, "PENDING")
        run, job = office.run(answer.json["run_id"]), office.jobs()[0]
        for each in (run, job):
            assert (each.flow_name, each.tag, each.tags) == ("hello", "gpu", ("gpu",))
            assert each.params == {"x": 1, "words": ["one", "two"]}
            assert each.workflow_yaml_sha256 == hashlib.sha256(YAML).hexdigest()
            assert each.workflow_yaml_bytes == len(YAML)
        assert job.workflow_yaml == YAML.decode()
        assert b"callable" not in office.server.runs.bucket.entries()[0].value  # type: ignore[operator]  # it has a value


@on_asyncio
async def test_the_tag_has_a_default() -> None:
    """As in POST /runs."""
    async with Office().open() as office:
        answer = await upload(office, *parts(flow_name="f"))
        assert office.run(answer.json["run_id"]).tag == "default"


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ([("flow_name", None, b"f")], "workflow: is missing"),
        (parts(), "flow_name: is missing"),
        (parts(flow_name=""), "flow_name: must be text"),
        (parts(flow_name="f" * 257), "flow_name: has 257"),
        (parts(flow_name="f" * 5000), "flow_name: has more than 4096 bytes"),
        (parts(flow_name="f", tag="a.b"), "tag: 'a.b'"),
        ([*parts(), ("flow_name", None, b"\xff")], "flow_name: is not UTF-8"),
        (parts(b"", flow_name="f"), "the file is empty"),
        (parts(b"\xff\xfe", flow_name="f"), "the file is not UTF-8"),
        (parts(b"{", flow_name="f"), "the file is not YAML: line 1"),
        (parts(b"- 1", flow_name="f"), "the file must be a mapping"),
        (parts(b"flow: {graph: ''}\ntasks: {}\n", flow_name="f"), "flow.graph"),
        (parts(YAML + b"flows: {}\n", flow_name="f"), None),
        (parts(YAML + b"discovery: {}\n", flow_name="f"), None),
        (parts(YAML + b"nonsense: 1\n", flow_name="f"), None),
        (parts(YAML.replace(b"a >> b", b"a >>"), flow_name="f"), "flow.graph"),
        (parts(YAML.replace(b"x: 1", b"x: 2024-01-01"), flow_name="f"), "flow.defaults.x (line 5)"),
        (parts(YAML.replace(b"x: 1", b"x: .nan"), flow_name="f"), "flow.defaults.x (line 5)"),
        (parts(YAML.replace(b"x: 1", b"x: " + b"[" * 200 + b"]" * 200), flow_name="f"), "params: has more than 100"),
    ],
    ids=range(19),
)
@on_asyncio
async def test_what_is_wrong_is_named(found: list[Part], named: str | None) -> None:
    """422 ERR-0002; nothing is stored."""
    async with Office().open() as office:
        answer = await upload(office, *found)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert answer.json["detail"].startswith(f"invalid request: {named or ''}")
        assert not office.stored()


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data", "multipart/mixed; boundary=edge"])
@on_asyncio
async def test_what_is_no_form_is_refused(kind: str) -> None:
    """The answer says what to send."""
    async with Office().open() as office:
        answer = await upload(office, *parts(flow_name="f"), Content_Type=kind)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert "multipart/form-data" in answer.json["detail"]


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", form(parts(flow_name="f"))[:-20], b"--edge\r\n\r\n\r\n--edge--", b"--edge\r\n" + b"x" * 40_000],
    ids=range(5),
)
@on_asyncio
async def test_a_form_that_cannot_be_read_is_refused(body: bytes) -> None:
    """Cut off, empty, or nonsense: a 4xx."""
    async with Office().open() as office:
        answer = await upload(office, body=body)
        assert answer.status in (413, 422)
        assert answer.err_id in ("ERR-PYOCO-0002", "ERR-PYOCO-0016")
        assert not office.stored()


@pytest.mark.parametrize("size", [YAML_MAX_BYTES + 1, YAML_MAX_BYTES + 100_000])
@on_asyncio
async def test_a_file_over_the_limit_is_413(size: int) -> None:
    """ERR-0016."""
    async with Office().open() as office:
        answer = await upload(office, *parts(YAML.ljust(size, b"\n"), flow_name="f"))
        assert (answer.status, answer.err_id) == (413, "ERR-PYOCO-0016")
        assert answer.json["detail"].startswith("workflow too large: ")
        assert not office.stored()


def test_a_file_at_the_limit_is_taken() -> None:
    """It is checked in a thread, of which virtual time knows nothing."""

    async def main() -> None:
        async with Office().open() as office:
            answer = await upload(office, *parts(YAML.ljust(YAML_MAX_BYTES, b"\n"), flow_name="f"))
            assert answer.status == 200
            assert office.run(answer.json["run_id"]).workflow_yaml_bytes == YAML_MAX_BYTES

    anyio.run(main)


@on_asyncio
async def test_an_idempotency_key_counts_here_too() -> None:
    """The same file gives the same run, another one is refused."""
    async with Office().open() as office:
        first = await upload(office, *parts(flow_name="f"), Idempotency_Key="k")
        assert (await upload(office, *parts(flow_name="f"), Idempotency_Key="k")).json == first.json
        other = await upload(office, *parts(YAML + b"# else\n", flow_name="f"), Idempotency_Key="k")
        assert (other.status, other.err_id) == (409, "ERR-PYOCO-0038")
        assert len(office.stored()) == 1


@on_asyncio
async def test_runs_of_a_file_are_found_by_its_digest() -> None:
    """As GET /runs?workflow_yaml_sha256= promises."""
    async with Office().open() as office:
        run_id = (await upload(office, *parts(flow_name="f"))).json["run_id"]
        await office.client.post("/runs", {"flow_name": "f"})
        digest = hashlib.sha256(YAML).hexdigest()
        found = (await office.client.get(f"/runs?workflow_yaml_sha256={digest}")).json
        assert [each["run_id"] for each in found["items"]] == [run_id]
