"""GET /workers and PATCH /workers/{id}."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.model.worker import WorkerState
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Office, on_asyncio

CONTRACT = [
    "worker_id",
    "instance_id",
    "state",
    "hidden",
    "tags",
    "last_seen_at",
    "last_heartbeat_at",
    "heartbeat_at",
    "current_run_id",
    "last_run_id",
    "last_run_status",
    "last_run_started_at",
    "last_run_finished_at",
    "stopped_at",
    "stop_reason",
    "updated_at",
    "wheel_sync",
]


async def shown(office: Office, query: str = "") -> dict[str, str]:
    """Ids and states, in order."""
    answer = await office.client.get(f"/workers?{query}")
    assert answer.status == 200
    return {each["worker_id"]: each["state"] for each in answer.json}


async def populate(office: Office) -> None:
    """Seen longest ago first."""
    office.work("silent", WorkerState.RUNNING)
    office.work("stopped-long-ago", WorkerState.STOPPED_GRACEFUL)
    await anyio.sleep(30)
    office.work("stopped", WorkerState.STOPPED_GRACEFUL)
    await anyio.sleep(1)
    office.work("hidden", WorkerState.IDLE, hidden=True)
    await anyio.sleep(1)
    office.work("idle", WorkerState.IDLE)
    await anyio.sleep(1)
    office.work("running", WorkerState.RUNNING)
    await office.caught_up()


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("", ["running", "idle"]),
        ("scope=active", ["running", "idle"]),
        ("include_hidden=true", ["running", "idle", "hidden"]),
        ("include_hidden=1", ["running", "idle", "hidden"]),
        ("include_hidden=false", ["running", "idle"]),
        ("limit=1", ["running"]),
        ("limit=500", ["running", "idle"]),
        ("scope=all", ["running", "idle", "stopped", "stopped-long-ago", "silent"]),
        ("scope=ALL&include_hidden=yes&limit=4", ["running", "idle", "hidden", "stopped"]),
        ("state=IDLE", ["idle"]),
        ("state=running", ["running"]),
        ("state=DISCONNECTED", []),
        ("scope=all&state=DISCONNECTED", ["silent"]),
        ("scope=all&state=STOPPED_GRACEFUL", ["stopped", "stopped-long-ago"]),
        ("scope=all&state=RUNNING", ["running"]),
    ],
)
@on_asyncio
async def test_who_is_listed(query: str, right: list[str]) -> None:
    """Seen last first; a silent worker is disconnected, one that said good-bye is not."""
    async with Office().open() as office:
        await populate(office)
        assert list(await shown(office, query)) == right


@on_asyncio
async def test_a_record_has_the_fields_of_the_contract() -> None:
    """With the state as a reader sees it, and what another version added."""
    async with Office().open() as office:
        office.work("w", WorkerState.RUNNING, tags=("a", "b"), current_run_id="r", extra={"theirs": 1})
        seen = virtual_clock()
        await anyio.sleep(21)
        await office.caught_up()
        found = (await office.client.get("/workers?scope=all")).json[0]
        assert set(found) >= set(CONTRACT)
        wanted = {"state": "DISCONNECTED", "tags": ["a", "b"], "current_run_id": "r", "theirs": 1, "heartbeat_at": seen}
        assert wanted.items() <= found.items()
        assert found["wheel_sync"]["last_result"] == "disabled"


@pytest.mark.parametrize(
    "query",
    ["scope=x", "state=STALE", "state=x", "limit=0", "limit=501", "limit=x", "limit=-1", "include_hidden=perhaps"],
)
@on_asyncio
async def test_a_wrong_query_is_422(query: str) -> None:
    """ERR-0019, with the name of the field."""
    async with Office().open() as office:
        answer = await office.client.get(f"/workers?{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0019")
        assert answer.json["detail"].startswith(f"invalid workers request: {query.partition('=')[0]}: ")


@on_asyncio
async def test_while_the_index_is_behind_the_answer_says_so() -> None:
    """A header, and what is known."""
    async with Office().open() as office:
        office.work("w")
        await office.caught_up()
        assert "x-pyoco-behind" not in (await office.client.get("/workers")).headers
        office.faults.rate("registry.watch", Lost.BEFORE, 1.0)
        office.faults.next("registry.watch_next", Lost.BEFORE)
        office.work("v")
        await anyio.sleep(2)
        answer = await office.client.get("/workers")
        assert "feed of workers was lost" in answer.headers["x-pyoco-behind"]
        assert [each["worker_id"] for each in answer.json] == ["w"]


# -- hiding -----------------------------------------------------------------------------------------------------------


async def hide(office: Office, worker_id: str = "w", body: bytes = b'{"hidden": true}') -> tuple[int, str]:
    answer = await office.client.ask("PATCH", f"/workers/{worker_id}", body)
    return answer.status, answer.err_id


@on_asyncio
async def test_a_worker_is_hidden_and_shown_again() -> None:
    """Display only: all else stays, and the worker's own updates do not undo it."""
    async with Office().open() as office:
        office.work("w", tags=("a",), extra={"theirs": 1})
        before = office.server.worker("w")
        await anyio.sleep(3)
        for hidden in (True, False):
            body = b'{"hidden": true}' if hidden else b'{"hidden": false, "else": 1}'
            answer = await office.client.ask("PATCH", "/workers/w", body)
            assert answer.status == 200
            assert answer.json == {"worker_id": "w", "hidden": hidden, "updated_at": virtual_clock()}
            stored = office.server.worker("w")
            assert stored is not None
            assert before is not None
            assert (stored.hidden, stored.tags, stored.extra, stored.last_seen_at) == (
                hidden,
                before.tags,
                before.extra,
                before.last_seen_at,
            )
            await office.process.registry.publish(before)
            await office.caught_up()
            assert list(await shown(office)) == ([] if hidden else ["w"])


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{}", b"[]", b"5", b"true", b'{"hidden": 1}', b'{"hidden": "true"}', b'{"hidden": null}', b"\xff"],
)
@on_asyncio
async def test_a_wrong_body_is_422(body: bytes) -> None:
    """ERR-0019; nothing changes."""
    async with Office().open() as office:
        office.work("w")
        assert await hide(office, body=body) == (422, "ERR-PYOCO-0019")
        assert office.server.worker("w").hidden is False  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize("worker_id", ["x", "%00", "..", "a%20b", "*", "x" * 5000])
@on_asyncio
async def test_a_worker_that_is_not_there_is_404(worker_id: str) -> None:
    """ERR-0020, whatever the id looks like."""
    async with Office().open() as office:
        assert await hide(office, worker_id) == (404, "ERR-PYOCO-0020")


@on_asyncio
async def test_a_record_that_cannot_be_read_is_404() -> None:
    """Somebody else wrote nonsense; it is not overwritten."""
    async with Office().open() as office:
        office.server.workers.write("w", b"nonsense", None)
        assert await hide(office) == (404, "ERR-PYOCO-0020")
        assert office.server.workers.get("w").value == b"nonsense"  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize("lost", list(Lost))
@on_asyncio
async def test_a_hiccup_is_503(lost: Lost) -> None:
    """And may be tried again."""
    async with Office().open() as office:
        office.work("w")
        office.faults.next("registry.hide", lost)
        assert await hide(office) == (503, "ERR-PYOCO-0003")
        assert (await office.client.ask("PATCH", "/workers/w", b'{"hidden": true}')).status == 200
