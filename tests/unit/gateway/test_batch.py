"""POST /runs/batch: many submissions in one request, each by itself."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pyoco_runtime.testing.faults import Lost, Slow
from tests.unit.gateway.support import Office, on_asyncio


def runs(count: int) -> list[dict[str, Any]]:
    return [{"flow_name": f"f-{n}", "params": {"n": n}} for n in range(count)]


@pytest.mark.parametrize("count", [1, 2, 1000])
@pytest.mark.parametrize("is_bare", [True, False])
@on_asyncio
async def test_every_item_is_a_run(count: int, is_bare: bool) -> None:
    """In the order of the request; all are stored and on the queue, and the list shows them."""
    async with Office().open() as office:
        answer = await office.client.post("/runs/batch", runs(count) if is_bare else {"runs": runs(count)})
        assert (answer.status, answer.json["accepted"], answer.json["refused"]) == (200, count, 0)
        ids = [each["run_id"] for each in answer.json["results"]]
        assert len(set(ids)) == count
        assert [office.run(each).flow_name for each in ids] == [f"f-{n}" for n in range(count)]
        assert [job.run_id for job in office.jobs()] == ids
        listed = (await office.client.get("/runs?limit=200")).json
        assert len(listed) == min(count, 200)


@pytest.mark.parametrize(
    "body",
    [[], {"runs": []}, {}, {"runs": {}}, {"runs": "x"}, {"items": [{"flow_name": "f"}]}, "x", 5, None, runs(1001)],
    ids=range(10),
)
@on_asyncio
async def test_a_batch_has_from_1_to_1000_items(body: object) -> None:
    """422 for anything else, and nothing is stored."""
    async with Office().open() as office:
        answer = await office.client.post("/runs/batch", body)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert answer.json["detail"].startswith("invalid request: ")
        assert not office.stored()


@pytest.mark.parametrize("body", [b"{", b"[NaN]", b"\xff", b"[" * 100_000])
@on_asyncio
async def test_what_is_not_json_is_refused(body: bytes) -> None:
    """As in POST /runs."""
    async with Office().open() as office:
        answer = await office.client.ask("POST", "/runs/batch", body)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")


@on_asyncio
async def test_a_batch_over_the_limit_of_bytes_is_413() -> None:
    """16 MiB."""
    async with Office().open() as office:
        answer = await office.client.ask("POST", "/runs/batch", b" " * (16 * 2**20 + 1))
        assert (answer.status, answer.err_id) == (413, "ERR-PYOCO-0040")


@on_asyncio
async def test_wrong_items_keep_no_other_back() -> None:
    """Each is told in its place what is wrong with it."""
    async with Office().open() as office:
        items = [{"flow_name": "a"}, {"flow_name": ""}, 5, {"flow_name": "b"}, {"flow_name": "c", "tag": "x.y"}, None]
        body = (await office.client.post("/runs/batch", items)).json
        assert (body["accepted"], body["refused"]) == (2, 4)
        assert ["run_id" in each for each in body["results"]] == [True, False, False, True, False, False]
        wrong = [each for each in body["results"] if "run_id" not in each]
        assert {(each["err_id"], each["msg_id"]) for each in wrong} == {("ERR-PYOCO-0002", "MSG-PYOCO-0002")}
        assert wrong[2]["detail"].startswith("invalid request: tag: 'x.y'")
        assert sorted(office.run(each).flow_name for each in office.stored()) == ["a", "b"]


@on_asyncio
async def test_a_batch_of_wrong_items_only_is_answered_item_by_item() -> None:
    """It needs no NATS."""
    async with Office().open() as office:
        answer = await office.client.post("/runs/batch", [{}, {}])
        assert (answer.status, answer.json["accepted"], answer.json["refused"]) == (200, 0, 2)


@pytest.mark.parametrize("operation", ["run_store.create", "queue.publish"])
@pytest.mark.parametrize("lost", list(Lost))
@on_asyncio
async def test_an_item_that_fails_is_taken_back(operation: Any, lost: Lost) -> None:
    """The others are accepted; of that one no snapshot is left."""
    async with Office().open() as office:
        office.faults.next(operation, None, lost, None)
        body = (await office.client.post("/runs/batch", runs(3))).json
        assert (body["accepted"], body["refused"]) == (2, 1)
        assert body["results"][1]["err_id"] == "ERR-PYOCO-0003"
        assert body["results"][1]["detail"].startswith("nats unavailable: ")
        accepted = {each["run_id"] for each in body["results"] if "run_id" in each}
        assert set(office.stored()) == accepted
        assert accepted <= {job.run_id for job in office.jobs()}


@pytest.mark.parametrize("operation", ["run_store.create", "queue.publish"])
@on_asyncio
async def test_a_batch_of_which_nothing_reached_nats_is_503(operation: Any) -> None:
    """A client that knows 503 from POST /runs needs to know nothing else; nothing is left."""
    async with Office().open() as office:
        office.faults.next(operation, *[Lost.BEFORE] * 3)
        answer = await office.client.post("/runs/batch", runs(3))
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert not office.stored()


@on_asyncio
async def test_taking_back_many_does_not_take_long() -> None:
    """When NATS is slow, a large batch is not answered after minutes."""
    async with Office().open() as office:
        office.faults.rate("queue.publish", Lost.BEFORE, 1.0)
        office.faults.next("run_store.remove", *[Slow(4.0)] * 200)
        began = anyio.current_time()
        answer = await office.client.post("/runs/batch", runs(200))
        assert answer.status == 503
        assert anyio.current_time() - began < 10


@on_asyncio
async def test_all_items_are_stamped_with_the_submitter() -> None:
    """As in POST /runs."""
    async with Office(auth=True).open() as office:
        key_id, client = office.key("demo")
        body = (await client.post("/runs/batch", runs(2))).json
        for each in body["results"]:
            run = office.run(each["run_id"])
            assert (run.tenant_id, run.api_key_id) == ("demo", key_id)


# -- Idempotency-Key --------------------------------------------------------------------------------------------------


@on_asyncio
async def test_a_key_gives_one_batch() -> None:
    """The same results, wrong items included, and the header that says so."""
    async with Office().open() as office:
        client = office.client.with_headers(Idempotency_Key="k")
        items = [*runs(3), {"flow_name": ""}]
        first = await client.post("/runs/batch", items)
        assert (first.status, first.json["accepted"]) == (200, 3)
        assert "idempotent-replayed" not in first.headers
        again = await client.post("/runs/batch", {"runs": items})
        assert again.json == first.json
        assert again.headers["idempotent-replayed"] == "true"
        assert (len(office.stored()), len(office.jobs())) == (3, 3)


@on_asyncio
async def test_a_key_with_another_batch_is_409() -> None:
    """And nothing of it is stored."""
    async with Office().open() as office:
        client = office.client.with_headers(Idempotency_Key="k")
        await client.post("/runs/batch", runs(2))
        answer = await client.post("/runs/batch", runs(3))
        assert (answer.status, answer.err_id) == (409, "ERR-PYOCO-0038")
        assert len(office.stored()) == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x7f"])
@on_asyncio
async def test_a_key_that_is_none_is_422(key: str) -> None:
    """As in POST /runs."""
    async with Office().open() as office:
        answer = await office.client.with_headers(Idempotency_Key=key).post("/runs/batch", runs(1))
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert not office.stored()


@on_asyncio
async def test_tenants_have_their_own_keys_of_batches() -> None:
    """The same key and the same batch: two batches."""
    async with Office(auth=True).open() as office:
        clients = [office.key(tenant)[1].with_headers(Idempotency_Key="k") for tenant in ("a", "b", "a")]
        answers = [(await client.post("/runs/batch", runs(2))).json for client in clients]
        assert answers[0] == answers[2]
        assert answers[0] != answers[1]
        assert len(office.stored()) == 4
