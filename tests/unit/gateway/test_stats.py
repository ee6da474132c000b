"""GET /stats and GET /stats/watch, in virtual time."""

from __future__ import annotations

import anyio
import pytest

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Office, on_asyncio


def end(office: Office, run_id: str, *, took_sec: float = 1.0, **fields: object) -> None:
    """A run that has ended just now."""
    now = virtual_clock()
    status = fields.pop("status", RunStatus.COMPLETED)
    assert isinstance(status, RunStatus)
    office.write(run_id, status, start_time=now - took_sec, end_time=now, **fields)


@on_asyncio
async def test_what_has_ended_in_the_last_hour() -> None:
    """By outcome and by flow, the minute that runs now is the last."""
    async with Office().open() as office:
        end(office, "a", took_sec=2.0)
        end(office, "b", took_sec=4.0)
        end(office, "c", status=RunStatus.FAILED, flow_name="g")
        office.write("d")
        await office.caught_up()
        found = (await office.client.get("/stats")).json
        assert (found["buckets"], found["bucket_sec"], found["ts"]) == (60, 60, virtual_clock())
        assert found["start"] <= found["ts"] - 59 * 60 < found["start"] + 60
        assert {status: (len(each), each[-1]) for status, each in found["ended"].items()} == {
            "COMPLETED": (60, 2),
            "FAILED": (60, 1),
            "CANCELLED": (60, 0),
        }
        f, g = found["flows"]
        assert (f["flow"], f["total"], f["count"][-1], g["flow"]) == ("f", 2, 2, "g")
        assert f["p50"] == pytest.approx(2.0, rel=0.06)
        assert f["p95_sec"][-1] == pytest.approx(4.0, rel=0.06)
        assert f["p50_sec"][0] is None
        assert (found["counts"]["RUNNING"], found["counts"]["COMPLETED"]) == (1, 2)


@on_asyncio
async def test_it_is_known_again_after_a_restart_of_the_gateway() -> None:
    """What has ended is stored; an hour is looked at, and no more."""
    async with Office().open() as office:
        end(office, "old")
        await anyio.sleep(3600)
        end(office, "young")
        await anyio.sleep(600)
        await office.caught_up()
    # the same runs, read by a gateway that was not there
    async with Office().open() as late:
        for each in office.server.runs.bucket.entries():
            assert each.value is not None
            late.server.write_run(each.key, each.value)
        await late.caught_up()
        ended = (await late.client.get("/stats")).json["ended"]["COMPLETED"]
        assert (sum(ended), ended[-11] + ended[-10]) == (1, 1)


@on_asyncio
async def test_the_queue_is_looked_at_all_the_time() -> None:
    """Also while nobody asks; a minute in which nobody could look is unknown."""
    async with Office().open() as office:
        await office.client.post("/runs", {"flow_name": "f", "tag": "gpu"})
        await anyio.sleep(120)
        office.process.disconnect()
        await anyio.sleep(180)
        office.process.reconnect()
        await office.caught_up()
        await anyio.sleep(20)
        found = (await office.client.get("/stats")).json
        (gpu,) = found["queue"]
        assert gpu["tag"] == "gpu"
        assert gpu["waiting"][-1] == 1
        assert gpu["oldest_sec"][-1] == pytest.approx(310, abs=20)
        assert gpu["waiting"][-3:-1] == [None, None]
        assert gpu["waiting"][0] is None
        assert found["since"] <= found["ts"] - 300


@on_asyncio
async def test_everybody_sees_his_tenant_and_admins_the_queue() -> None:
    """The queue is shared: how full it is says what others do."""
    async with Office(auth=True).open() as office:
        end(office, "r", tenant_id="a")
        _, a = office.key("a")
        _, admin = office.key("b", admin=True)
        await a.post("/runs", {"flow_name": "f"})
        await anyio.sleep(20)
        await office.caught_up()
        ours, theirs = (await a.get("/stats")).json, (await admin.get("/stats")).json
        assert (sum(ours["ended"]["COMPLETED"]), sum(theirs["ended"]["COMPLETED"])) == (1, 0)
        assert (ours["queue"], ours["queue_visible"], ours["counts"]["PENDING"]) == ([], False, 1)
        assert (theirs["queue"][0]["tag"], theirs["queue_visible"], theirs["flows"]) == ("default", True, [])


@on_asyncio
async def test_the_stream_tells_the_counts_when_they_change() -> None:
    """Within a second and a bit, however many runs it were; of one's own tenant."""
    office = Office(auth=True)
    a, b = office.key("a")[1], office.key("b")[1]
    async with office.open(), a.watch("/stats/watch") as ours, b.watch("/stats/watch") as theirs:
        assert (await ours.next()).data["counts"]["RUNNING"] == 0
        await theirs.next()
        began = anyio.current_time()
        for number in range(20):
            office.write(f"r-{number}", tenant_id="a")
        sent = await ours.next()
        assert (sent.name, sent.data["counts"]["RUNNING"]) == ("counts", 20)
        assert anyio.current_time() - began <= 1.1
        assert (await theirs.next()).name == "heartbeat"


@on_asyncio
async def test_the_stream_tells_the_hour_every_fifteen_seconds() -> None:
    """With signs of life in between."""
    async with Office().open() as office, office.client.watch("/stats/watch") as stream:
        began = anyio.current_time()
        names = []
        for _ in range(8):
            sent = await stream.next()
            names.append((sent.name, round(anyio.current_time() - began)))
        assert [each for each in names if each[0] == "stats"] == [("stats", 0), ("stats", 15), ("stats", 30)]
        assert {name for name, _ in names} == {"stats", "heartbeat"}
