"""What the answers to accepted runs add when, as far as workers tell, none can run them."""

from __future__ import annotations

from typing import Any

import anyio

from pyoco_runtime.model.worker import WorkerState
from tests.unit.gateway.support import Office, on_asyncio


async def warned(office: Office, flow_name: str, tag: str = "default") -> list[str]:
    """The warnings of POST /runs; the run is accepted in any case."""
    answer = await office.client.post("/runs", {"flow_name": flow_name, "tag": tag})
    assert (answer.status, answer.json["status"]) == (200, "PENDING")
    assert answer.json.get("warnings") != []
    found: list[str] = answer.json.get("warnings", [])
    return found


async def employ(office: Office, worker_id: str = "w", **fields: Any) -> None:
    """A live worker that announces this."""
    office.work(worker_id, WorkerState.IDLE, **{"tags": ("default",), **fields})
    await office.caught_up()


@on_asyncio
async def test_a_tag_without_a_live_worker_is_warned_of() -> None:
    """Until one comes, and again when it has fallen silent."""
    async with Office().open() as office:
        assert await warned(office, "hello") == [
            'no live worker has the tag "default": the run waits until one comes (there is no live worker)'
        ]
        await employ(office, flows=("hello",), tasks=())
        assert await warned(office, "hello") == []
        await anyio.sleep(30)
        assert len(await warned(office, "hello")) == 1


@on_asyncio
async def test_a_flow_that_no_worker_announces_is_warned_of() -> None:
    """With what they do run; as soon as one announces it, or cannot tell, there is nothing to say."""
    async with Office().open() as office:
        await employ(office, flows=("hello", "slow"), tasks=())
        assert await warned(office, "hello") == []
        assert await warned(office, "other") == [
            'no live worker with the tag "default" runs the flow "other" (they run hello, slow)'
        ]
        await employ(office, flows=("hello", "other"), tasks=())
        assert await warned(office, "other") == []
        assert len(await warned(office, "slow")) == 1
        await employ(office, "peer")
        assert await warned(office, "slow") == []


@on_asyncio
async def test_a_batch_says_each_warning_once() -> None:
    """And only of runs that were accepted."""
    async with Office().open() as office:
        await employ(office, flows=("hello",), tasks=())
        runs = [{"flow_name": "hello"}, {"flow_name": "x"}, {"flow_name": "x"}, {"flow_name": ""}]
        answer = await office.client.post("/runs/batch", {"runs": runs})
        assert (answer.json["accepted"], answer.json["refused"]) == (3, 1)
        assert answer.json["warnings"] == ['no live worker with the tag "default" runs the flow "x" (they run hello)']
        assert "warnings" not in (await office.client.post("/runs/batch", {"runs": runs[:1]})).json
        many = [{"flow_name": f"flow-{number}"} for number in range(100)]
        shown = (await office.client.post("/runs/batch", {"runs": many})).json["warnings"]
        assert (len(shown), shown[-1]) == (21, "and more like these")


@on_asyncio
async def test_a_gateway_that_does_not_know_all_workers_says_nothing() -> None:
    """It would be wrong more often than right."""
    async with Office().open(indexing=False) as office:
        assert await warned(office, "hello") == []
