"""POST /runs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import anyio
import pytest

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Answer, Office, on_asyncio


async def submit(office: Office, body: object, **headers: str) -> Answer:
    return await office.client.with_headers(**headers).post("/runs", body)


@on_asyncio
async def test_a_run_is_accepted_once_snapshot_and_job_are_stored() -> None:
    """All fields go where the contract says."""
    async with Office().open() as office:
        wanted = {"flow_name": "hello", "params": {"x": [1, None, "é"]}, "tag": "gpu", "tags": ["a", "b.c"]}
        answer = await submit(office, wanted)
        run_id = answer.json["run_id"]
        assert (answer.status, answer.json["status"]) == (200, "PENDING")
        assert uuid.UUID(run_id).version == 4
        run, job = office.run(run_id), office.jobs()[0]
        for found in (run, job):
            assert (found.flow_name, found.params, found.tag, found.tags) == (
                "hello",
                wanted["params"],
                "gpu",
                ("a", "b.c"),
            )
            assert (found.tenant_id, found.api_key_id, found.run_id) == (None, None, run_id)
        assert run.status is RunStatus.PENDING
        assert run.updated_at == run.heartbeat_at == job.submitted_at == pytest.approx(virtual_clock(), abs=1)
        assert [message.subject for message in office.server.work.messages.values()] == ["pyoco.work.gpu"]


@pytest.mark.parametrize(
    ("body", "tag", "tags"),
    [
        ({"flow_name": "f"}, "default", ("default",)),
        ({"flow_name": "f", "params": None, "tag": None, "tags": None}, "default", ("default",)),
        ({"flow_name": "f", "tag": ""}, "default", ("default",)),
        ({"flow_name": "f", "tag": " gpu "}, "gpu", ("gpu",)),
        ({"flow_name": "f", "tag": "gpu", "tags": []}, "gpu", ("gpu",)),
        ({"flow_name": "f", "tag": "gpu", "tags": ["nightly"]}, "gpu", ("nightly",)),
        ({"flow_name": "f", "unknown": 1}, "default", ("default",)),
        ({"flow_name": "流れ"}, "default", ("default",)),
        ({"flow_name": "f" * 256, "tag": "t" * 128, "tags": ["x" * 128] * 64}, "t" * 128, ("x" * 128,) * 64),
    ],
)
@on_asyncio
async def test_what_is_left_out_has_its_default(body: dict[str, Any], tag: str, tags: tuple[str, ...]) -> None:
    """The tag is `default`, the tags are the tag, the params are empty; unknown fields are ignored."""
    async with Office().open() as office:
        answer = await submit(office, body)
        assert answer.status == 200
        run = office.run(answer.json["run_id"])
        assert (run.flow_name, run.tag, run.tags, run.params) == (body["flow_name"], tag, tags, {})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "flow_name: is missing"),
        ({"flow_name": None}, "flow_name: is missing"),
        ({"flow_name": ""}, "flow_name: must be text"),
        ({"flow_name": "  "}, "flow_name: must be text"),
        ({"flow_name": 5}, "flow_name: must be text"),
        ({"flow_name": "f" * 257}, "flow_name: has 257"),
        ({"flow_name": "a\nb"}, "flow_name: "),
        ({"flow_name": "a\x00"}, "flow_name: "),
        ({"flow_name": "\ud800"}, "flow_name: "),
        ({"flow_name": "f", "params": []}, "params: must be an object"),
        ({"flow_name": "f", "params": "x"}, "params: must be an object"),
        ({"flow_name": "f", "tag": "a.b"}, "tag: 'a.b'"),
        ({"flow_name": "f", "tag": "*"}, "tag: '*'"),
        ({"flow_name": "f", "tag": ">"}, "tag: '>'"),
        ({"flow_name": "f", "tag": "a b"}, "tag: 'a b'"),
        ({"flow_name": "f", "tag": "é"}, "tag: 'é'"),
        ({"flow_name": "f", "tag": "a\n"}, None),
        ({"flow_name": "f", "tag": "t" * 129}, "tag: "),
        ({"flow_name": "f", "tag": 7}, "tag: must be text"),
        ({"flow_name": "f", "tag": False}, "tag: must be text"),
        ({"flow_name": "f", "tags": "a"}, "tags: must be a list"),
        ({"flow_name": "f", "tags": {}}, "tags: must be a list"),
        ({"flow_name": "f", "tags": [1]}, "tags: must be a list"),
        ({"flow_name": "f", "tags": ["x"] * 65}, "tags: has 65"),
        ({"flow_name": "f", "tags": ["x" * 129]}, "tags: an entry has 129"),
        ([], "the body must be a JSON object"),
        ("text", "the body must be a JSON object"),
        (5, "the body must be a JSON object"),
        (None, "the body must be a JSON object"),
    ],
)
@on_asyncio
async def test_what_is_wrong_is_named(body: object, named: str | None) -> None:
    """422 ERR-0002; nothing is stored. A tag is trimmed before it is looked at."""
    async with Office().open() as office:
        answer = await submit(office, body)
        if named is None:
            assert answer.status == 200
            return
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert answer.json["detail"].startswith(f"invalid request: {named}")
        assert not office.stored()
        assert not office.jobs()


BAD_BODIES = [
    b"{",
    b"",
    b"nonsense",
    b"\xff\xfe",
    b'{"flow_name": "f", "params": {"x": NaN}}',
    b'{"flow_name": "f", "params": {"x": Infinity}}',
    b'{"flow_name": "f", "params": {"x": -Infinity}}',
    b'{"flow_name": "f", "params": {"x": ' + b"9" * 5000 + b"}}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
@on_asyncio
async def test_what_is_not_json_is_refused(body: bytes) -> None:
    """Never a 500."""
    async with Office().open() as office:
        answer = await office.client.ask("POST", "/runs", body)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert not office.stored()


@pytest.mark.parametrize("depth", [10, 50, 90, 200, 300, 400, 480, 600, 800, 900, 940, 960, 980, 990, 1000, 5000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
@on_asyncio
async def test_nesting_is_taken_or_refused(left: str, right: str, depth: int) -> None:
    """What is accepted can be read again, by everybody."""
    async with Office().open() as office:
        body = '{"flow_name": "f", "params": {"x": ' + left * depth + "1" + right * depth + "}}"
        answer = await office.client.ask("POST", "/runs", body.encode())
        assert answer.status == (200 if depth < 100 else 422), answer
        if answer.status == 200:
            assert (await office.client.get(f"/runs/{answer.json['run_id']}")).status == 200
            assert len(office.jobs()) == 1
        else:
            assert not office.stored()


@on_asyncio
async def test_a_number_that_no_float_holds_is_no_defect() -> None:
    """1e999 is JSON; whatever becomes of it, all answers stay JSON."""
    async with Office().open() as office:
        answer = await office.client.ask("POST", "/runs", b'{"flow_name": "f", "params": {"x": 1e999}}')
        assert answer.status in (200, 422)
        for run_id in office.stored():
            assert (await office.client.get(f"/runs/{run_id}")).json["run_id"] == run_id


@on_asyncio
async def test_a_body_over_the_limit_is_413() -> None:
    """16 MiB; the rest is not read."""
    async with Office().open() as office:
        answer = await office.client.ask("POST", "/runs", b" " * (16 * 2**20 + 1))
        assert (answer.status, answer.err_id) == (413, "ERR-PYOCO-0040")
        assert answer.json["detail"].startswith("request too large: ")


@on_asyncio
async def test_whoever_submits_sees_his_run_in_the_list() -> None:
    """Though the index hears of it a moment later."""
    async with Office().open() as office:
        run_id = (await submit(office, {"flow_name": "f"})).json["run_id"]
        assert [each["run_id"] for each in (await office.client.get("/runs")).json] == [run_id]


@pytest.mark.parametrize("operation", ["run_store.create", "queue.publish"])
@pytest.mark.parametrize("lost", list(Lost))
@on_asyncio
async def test_nats_hiccups_are_503_and_leave_no_run(operation: Any, lost: Lost) -> None:
    """What nobody was told of is taken back."""
    async with Office().open() as office:
        office.faults.next(operation, lost)
        answer = await submit(office, {"flow_name": "f"})
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert answer.json["detail"].startswith("nats unavailable: ")
        assert not office.stored()


# -- Idempotency-Key --------------------------------------------------------------------------------------------------


@on_asyncio
async def test_the_same_key_and_body_give_the_same_run() -> None:
    """However often, and however the body is written; the later answers say so."""
    async with Office().open() as office:
        first = await submit(office, {"flow_name": "f", "params": {"a": 1, "b": 2}}, Idempotency_Key="k")
        assert "idempotent-replayed" not in first.headers
        for _ in range(3):
            again = await submit(office, {"params": {"b": 2, "a": 1}, "flow_name": "f"}, Idempotency_Key="k")
            assert (again.status, again.json) == (200, first.json)
            assert again.headers["idempotent-replayed"] == "true"
        assert len(office.stored()) == len(office.jobs()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"flow_name": "g"},
        {"flow_name": "f", "params": {"x": 1}},
        {"flow_name": "f", "tag": "gpu"},
        {"flow_name": "f", "tags": ["x"]},
    ],
)
@on_asyncio
async def test_the_same_key_with_another_body_is_409(other: dict[str, Any]) -> None:
    """The first run is not touched."""
    async with Office().open() as office:
        await submit(office, {"flow_name": "f"}, Idempotency_Key="k")
        answer = await submit(office, other, Idempotency_Key="k")
        assert (answer.status, answer.err_id) == (409, "ERR-PYOCO-0038")
        assert answer.json["detail"].startswith("idempotency key reused: ")
        assert len(office.stored()) == len(office.jobs()) == 1


@on_asyncio
async def test_a_key_is_forgotten_after_a_day() -> None:
    """Then it is a new request."""
    async with Office().open() as office:
        first = await submit(office, {"flow_name": "f"}, Idempotency_Key="k")
        await anyio.sleep(86_300)
        assert (await submit(office, {"flow_name": "f"}, Idempotency_Key="k")).json == first.json
    office = Office()
    async with office.open():
        first = await submit(office, {"flow_name": "f"}, Idempotency_Key="k")
        office.server.promises._promises.clear()
        assert (await submit(office, {"flow_name": "f"}, Idempotency_Key="k")).json != first.json


@on_asyncio
async def test_a_key_belongs_to_its_tenant() -> None:
    """Two tenants may use the same one; two keys of one tenant share it."""
    async with Office(auth=True).open() as office:
        clients = [office.key(tenant)[1].with_headers(Idempotency_Key="k") for tenant in ("a", "b", "a")]
        answers = [await client.post("/runs", {"flow_name": "f"}) for client in clients]
        ids = [answer.json["run_id"] for answer in answers]
        assert ids[0] == ids[2] != ids[1]
        assert [office.run(each).tenant_id for each in ids[:2]] == ["a", "b"]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "a\x7f"])
@on_asyncio
async def test_a_key_that_is_none_is_refused(key: str) -> None:
    """422 that says what one looks like."""
    async with Office().open() as office:
        answer = await submit(office, {"flow_name": "f"}, Idempotency_Key=key)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert "Idempotency-Key" in answer.json["detail"]
        assert not office.stored()


@pytest.mark.parametrize("operation", ["promises.claim", "run_store.create", "queue.publish"])
@pytest.mark.parametrize("lost", list(Lost))
@on_asyncio
async def test_after_a_hiccup_the_same_key_can_be_used_again(operation: Any, lost: Lost) -> None:
    """503 first; then one run, and one job for it, and every later request gets it too."""
    async with Office().open() as office:
        office.faults.next(operation, lost)
        assert (await submit(office, {"flow_name": "f"}, Idempotency_Key="k")).status == 503
        assert not office.stored()
        answers = [await submit(office, {"flow_name": "f"}, Idempotency_Key="k") for _ in range(3)]
        assert {each.status for each in answers} == {200}
        assert {each.json["run_id"] for each in answers} == set(office.stored())
        assert answers[0].json["run_id"] in [job.run_id for job in office.jobs()]


@on_asyncio
async def test_many_at_once_with_one_key_are_one_run() -> None:
    """All get the same answer."""
    async with Office().open() as office:
        found: list[Answer] = []

        async def one() -> None:
            found.append(await submit(office, {"flow_name": "f"}, Idempotency_Key="k"))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
        assert {(each.status, each.json["run_id"]) for each in found} == {(200, office.stored()[0])}
        assert len(office.stored()) == len(office.jobs()) == 1


# -- API keys ---------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_a_run_is_stamped_with_its_submitter() -> None:
    """Snapshot and job say whose it is; what the body says about that counts for nothing."""
    async with Office(auth=True).open() as office:
        key_id, client = office.key("demo")
        answer = await client.post("/runs", {"flow_name": "f", "tenant_id": "other", "api_key_id": "x"})
        for found in (office.run(answer.json["run_id"]), office.jobs()[0]):
            assert (found.tenant_id, found.api_key_id) == ("demo", key_id)


@on_asyncio
async def test_the_content_type_does_not_matter() -> None:
    """curl -d sends a form's; the body is what counts."""
    async with Office().open() as office:
        for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
            client = office.client.with_headers(Content_Type=kind)
            answer = await client.ask("POST", "/runs", json.dumps({"flow_name": "f"}).encode())
            assert answer.status == 200
