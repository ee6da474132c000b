"""/dlq: list, read, replay, drop."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.testing.faults import Lost
from tests.unit.gateway.support import Client, Office, on_asyncio

CONTRACT = [
    "timestamp",
    "reason",
    "error",
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "worker_id",
    "num_delivered",
    "subject",
]
JOB = Job(run_id="r-1", flow_name="f", tag="gpu", submitted_at=5.0, tags=("a",), params={"x": 1}, workflow_yaml="text")


async def seqs(client: Client, query: str = "") -> list[int]:
    answer = await client.get(f"/dlq?{query}")
    assert answer.status == 200
    return [each["seq"] for each in answer.json["items"]]


@on_asyncio
async def test_a_letter_is_shown_with_the_fields_of_the_contract() -> None:
    """In the list and by itself; the job is not shown, only that there is one."""
    async with Office().open() as office:
        seq = office.bury(flow_name="f", tag="gpu", tags=("a",), worker_id="w", num_delivered=2, job=JOB)
        await office.caught_up()
        (item,) = (await office.client.get("/dlq")).json["items"]
        assert item == (await office.client.get(f"/dlq/{seq}")).json
        assert set(item) >= {"seq", "replayable", *CONTRACT}
        wanted = {"seq": seq, "reason": "execution_error", "error": "bad", "run_id": "r-1", "replayable": True}
        assert wanted.items() <= item.items()
        assert "job" not in item


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("", [4, 3, 2, 1]),
        ("limit=2", [4, 3]),
        ("before=3", [2, 1]),
        ("before=3&limit=1", [2]),
        ("reason=invalid_job", [2]),
        ("reason=INVALID_JOB", [2]),
        ("tag=gpu", [4, 1]),
        ("flow=g", [3]),
        ("run_id=r-4", [4]),
        ("run_id=none", []),
        ("tag=gpu&run_id=r-1", [1]),
    ],
)
@on_asyncio
async def test_filters(query: str, right: list[int]) -> None:
    """The newest first."""
    async with Office().open() as office:
        office.bury(tag="gpu")
        office.bury(Reason.INVALID_JOB, run_id=None, payload="?")
        office.bury(flow_name="g", run_id="r-3")
        office.bury(tag="gpu", run_id="r-4")
        await office.caught_up()
        assert await seqs(office.client, query) == right


@on_asyncio
async def test_page_by_page() -> None:
    """`next_before` is where the next one begins; letters that are gone meanwhile are left out."""
    async with Office().open() as office:
        for n in range(10):
            office.bury(run_id=f"r-{n}")
        await office.caught_up()
        for seq in (9, 8, 5, 1):
            office.server.letters.drop(seq)  # too old, of which nobody tells
        found, query = [], "limit=2"
        while True:
            page = (await office.client.get(f"/dlq?{query}")).json
            found += [each["seq"] for each in page["items"]]
            if page["next_before"] is None:
                break
            query = f"limit=2&before={page['next_before']}"
        assert found == [10, 7, 6, 4, 3, 2]


@pytest.mark.parametrize("query", ["reason=x", "limit=0", "limit=201", "limit=x", "before=0", "before=x"])
@on_asyncio
async def test_a_wrong_query_is_422(query: str) -> None:
    """ERR-0017."""
    async with Office().open() as office:
        answer = await office.client.get(f"/dlq?{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0017")


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("POST", "/replay")])
@pytest.mark.parametrize("seq", ["7", "0", "9" * 30, "9" * 400])
@on_asyncio
async def test_a_letter_that_is_not_there_is_404(method: str, path: str, seq: str) -> None:
    """ERR-0036, however large the number."""
    async with Office().open() as office:
        answer = await office.client.ask(method, f"/dlq/{seq}{path}")
        assert (answer.status, answer.err_id) == (404, "ERR-PYOCO-0036")
        assert answer.json["detail"] == "dead letter not found"


@pytest.mark.parametrize("seq", ["x", "-1", "1.5", "%20", "1%00", "9" * 5000])
@on_asyncio
async def test_what_is_no_number_is_404(seq: str) -> None:
    """A JSON answer too."""
    async with Office().open() as office:
        assert (await office.client.get(f"/dlq/{seq}")).status == 404
        assert (await office.client.get(f"/dlq/{seq}")).err_id


@on_asyncio
async def test_letters_that_cannot_be_read() -> None:
    """They are not listed; asked for by number, it is said why."""
    async with Office().open() as office:
        seq = office.server.write_letter(b"nonsense")
        await office.caught_up()
        assert await seqs(office.client) == []
        answer = await office.client.get(f"/dlq/{seq}")
        assert (answer.status, answer.err_id) == (404, "ERR-PYOCO-0036")
        assert "cannot be read" in answer.json["detail"]


@on_asyncio
async def test_a_letter_is_dropped_once() -> None:
    """Then it is gone, from the list at once."""
    async with Office().open() as office:
        seq = office.bury()
        await office.caught_up()
        answer = await office.client.ask("DELETE", f"/dlq/{seq}")
        assert (answer.status, answer.json) == (200, {"seq": seq, "deleted": True})
        assert await seqs(office.client) == []
        assert not office.server.letters.messages
        assert (await office.client.ask("DELETE", f"/dlq/{seq}")).status == 404


# -- replay -----------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_a_replay_is_a_new_run_that_names_its_origin() -> None:
    """With all that the job had; the letter stays."""
    async with Office().open() as office:
        seq = office.bury(job=JOB)
        answer = await office.client.post(f"/dlq/{seq}/replay")
        run_id = answer.json["run_id"]
        assert (answer.status, answer.json) == (200, {"run_id": run_id, "status": "PENDING", "replay_of": seq})
        run, (job,) = office.run(run_id), office.jobs()
        for found in (run, job):
            assert (found.run_id, found.flow_name, found.tag, found.tags) == (run_id, "f", "gpu", ("a",))
            assert found.params == {"x": 1}
            assert (found.extra["replay_of"], found.extra["replay_of_letter"]) == ("r-1", seq)
        assert run_id != "r-1"
        assert job.workflow_yaml == "text"
        assert run.workflow_yaml_bytes == 4
        assert seq in office.server.letters.messages
        assert (await office.client.get(f"/runs/{run_id}")).json["replay_of"] == "r-1"


@on_asyncio
async def test_a_letter_without_a_job_takes_what_the_run_still_holds() -> None:
    """The peer's letters have none."""
    async with Office().open() as office:
        office.write("r-1", RunStatus.FAILED, flow_name="g", tag="gpu", tags=("b",), params={"y": 2})
        run_id = (await office.client.post(f"/dlq/{office.bury()}/replay")).json["run_id"]
        run = office.run(run_id)
        assert (run.flow_name, run.tag, run.tags, run.params) == ("g", "gpu", ("b",), {"y": 2})


@pytest.mark.parametrize(
    ("letter", "run", "why"),
    [
        ({"run_id": None}, None, "no job"),
        ({}, None, "its run is gone"),
        ({}, {"workflow_yaml_sha256": "abc"}, "flow.yaml"),
        ({}, {"tag": "a.b"}, "tag: 'a.b'"),
        ({}, {"flow_name": ""}, "flow_name: "),
        ({"job": Job(run_id="r-1", flow_name="a\nb", tag="t", submitted_at=1.0)}, None, "flow_name: "),
    ],
)
@on_asyncio
async def test_what_cannot_be_replayed_says_why(letter: dict[str, Any], run: dict[str, Any] | None, why: str) -> None:
    """409 ERR-0037; nothing is submitted."""
    async with Office().open() as office:
        seq = office.bury(**letter)
        if run is not None:
            office.write("r-1", RunStatus.FAILED, **run)
        stored = office.stored()
        answer = await office.client.post(f"/dlq/{seq}/replay")
        assert (answer.status, answer.err_id) == (409, "ERR-PYOCO-0037")
        assert answer.json["detail"].startswith("dead letter cannot be replayed: ")
        assert why in answer.json["detail"]
        assert office.stored() == stored


@on_asyncio
async def test_a_replay_belongs_to_whoever_asked() -> None:
    """Tenant and key of the caller."""
    async with Office(auth=True).open() as office:
        key_id, client = office.key("demo", admin=True)
        seq = office.bury(job=JOB, tenant_id="demo", api_key_id="old-key-id")
        run = office.run((await client.post(f"/dlq/{seq}/replay")).json["run_id"])
        assert (run.tenant_id, run.api_key_id) == ("demo", key_id)


@pytest.mark.parametrize(
    ("operation", "method", "path"),
    [
        ("dead_letters.get", "GET", ""),
        ("dead_letters.get", "POST", "/replay"),
        ("queue.publish", "POST", "/replay"),
        ("dead_letters.get", "DELETE", ""),
        ("dead_letters.drop", "DELETE", ""),
    ],
)
@on_asyncio
async def test_hiccups_are_503(operation: Any, method: str, path: str) -> None:
    """And leave no half a run."""
    async with Office().open() as office:
        seq = office.bury(job=JOB)
        office.faults.next(operation, Lost.BEFORE)
        answer = await office.client.ask(method, f"/dlq/{seq}{path}")
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert not office.stored()


@on_asyncio
async def test_while_the_index_is_behind_the_list_says_so() -> None:
    """A header, and what is known."""
    async with Office().open() as office:
        office.faults.rate("dead_letters.watch", Lost.BEFORE, 1.0)
        office.faults.next("dead_letters.watch_next", Lost.BEFORE)
        office.bury()
        await anyio.sleep(2)
        answer = await office.client.get("/dlq")
        assert "feed of dead letters was lost" in answer.headers["x-pyoco-behind"]
