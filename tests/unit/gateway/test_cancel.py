"""POST /runs/{id}/cancel."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Answer, Office, on_asyncio

OPEN = [RunStatus.PENDING, RunStatus.RUNNING]
OVER = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED]


async def cancel(office: Office, body: object = None) -> Answer:
    return await office.client.post("/runs/a/cancel", body)


@pytest.mark.parametrize("status", OPEN)
@on_asyncio
async def test_an_open_run_is_asked_to_stop(status: RunStatus) -> None:
    """The answer is what is stored then."""
    async with Office().open() as office:
        office.write("a", status, params={"x": 1}, worker_id="w", extra={"theirs": 1})
        await anyio.sleep(5)
        answer = await cancel(office)
        run = office.run("a")
        assert (answer.status, answer.json["status"], run.status) == (200, "CANCELLING", RunStatus.CANCELLING)
        assert answer.json["cancel_requested_at"] == run.cancel_requested_at == run.updated_at == virtual_clock()
        assert answer.json["cancel_requested_by"] is None
        assert (run.params, run.worker_id, run.extra) == ({"x": 1}, "w", {"theirs": 1})
        assert "task_records" not in answer.json


@on_asyncio
async def test_the_first_request_counts() -> None:
    """Asking again changes nothing, and writes nothing."""
    async with Office().open() as office:
        office.write("a")
        first = await cancel(office, {"reason": "why not"})
        stored = office.server.snapshot("a")
        for reason in (None, {"reason": "else"}):
            await anyio.sleep(5)
            assert (await cancel(office, reason)).json == first.json
        assert office.server.snapshot("a") == stored


@pytest.mark.parametrize("status", OVER)
@on_asyncio
async def test_a_run_that_is_over_stays_as_it_is(status: RunStatus) -> None:
    """A terminal snapshot never changes."""
    async with Office().open() as office:
        office.write("a", status, updated_at=5.0)
        stored = office.server.snapshot("a")
        answer = await cancel(office, {"reason": "too late"})
        assert (answer.status, answer.json["status"], answer.json["updated_at"]) == (200, status, 5.0)
        assert answer.json["cancel_requested_at"] is None
        assert office.server.snapshot("a") == stored


@on_asyncio
async def test_the_reason_is_kept() -> None:
    """As far as it is short."""
    async with Office().open() as office:
        office.write("a")
        assert (await cancel(office, {"reason": "x" * 1000})).json["cancel_reason"] == "x" * 500


@pytest.mark.parametrize("body", [{}, {"reason": None}, {"other": 5}])
@on_asyncio
async def test_a_reason_is_optional(body: object) -> None:
    """So is the body."""
    async with Office().open() as office:
        office.write("a")
        answer = await cancel(office, body)
        assert (answer.status, "cancel_reason" in answer.json) == (200, False)


@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b'"why"', b'{"reason": 5}', b'{"reason": NaN}', b"\xff"])
@on_asyncio
async def test_a_body_that_is_wrong_is_422(body: bytes) -> None:
    """And the run goes on."""
    async with Office().open() as office:
        office.write("a")
        answer = await office.client.ask("POST", "/runs/a/cancel", body)
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert office.run("a").status is RunStatus.RUNNING


@on_asyncio
async def test_a_run_that_is_not_there_is_404() -> None:
    """ERR-0005."""
    async with Office().open() as office:
        answer = await cancel(office)
        assert (answer.status, answer.err_id, answer.json["detail"]) == (404, "ERR-PYOCO-0005", "run not found")


@pytest.mark.parametrize("conflicts", [1, 3, 20])
@on_asyncio
async def test_whoever_writes_at_the_same_moment_loses_nothing(conflicts: int) -> None:
    """It is read again and decided anew; every write is a compare-and-set."""
    async with Office().open() as office:
        office.write("a")
        for _ in range(conflicts):
            office.faults.conflict_next("a")
        assert (await cancel(office)).json["status"] == "CANCELLING"
        assert office.run("a").status is RunStatus.CANCELLING


@on_asyncio
async def test_a_run_that_ends_at_the_same_moment_stays_ended() -> None:
    """The answer tells of its end."""
    async with Office().open() as office:
        before = office.write("a")
        real = office.process.run_store.update

        async def late(snapshot: RunSnapshot, revision: int) -> int:
            if revision == before:
                office.write("a", RunStatus.COMPLETED)
            return await real(snapshot, revision)

        office.process.run_store.update = late  # type: ignore[method-assign]  # somebody is faster
        assert (await cancel(office)).json["status"] == "COMPLETED"
        assert office.run("a").status is RunStatus.COMPLETED


@pytest.mark.parametrize("lost", list(Lost))
@on_asyncio
async def test_a_lost_answer_can_be_asked_for_again(lost: Lost) -> None:
    """503, and then the same as if nothing had happened."""
    async with Office().open() as office:
        office.write("a")
        office.faults.next("run_store.update", lost)
        answer = await cancel(office)
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert (await cancel(office)).json["status"] == "CANCELLING"


@on_asyncio
async def test_under_api_keys_it_is_known_who_asked() -> None:
    """The first; another key of the tenant changes nothing any more."""
    async with Office(auth=True).open() as office:
        key_id, client = office.key("demo")
        office.write("a", tenant_id="demo")
        assert (await client.post("/runs/a/cancel")).json["cancel_requested_by"] == f"api_key:{key_id}"
        other = office.key("demo")[1]
        assert (await other.post("/runs/a/cancel")).json["cancel_requested_by"] == f"api_key:{key_id}"


@on_asyncio
async def test_many_at_once_are_one_request() -> None:
    """All are answered with the same time."""
    async with Office().open() as office:
        office.write("a")
        found: list[Answer] = []

        async def one() -> None:
            found.append(await cancel(office))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one)
        assert {(each.status, each.json["cancel_requested_at"]) for each in found} == {
            (200, office.run("a").cancel_requested_at)
        }
