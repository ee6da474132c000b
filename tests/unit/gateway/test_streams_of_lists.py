"""GET /workers/watch, /actors/watch and /dlq/watch, in virtual time."""

from __future__ import annotations

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.model.dead_letter import Reason
from pyoco_runtime.model.worker import WorkerState
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Office, Sent, Stream, on_asyncio, own_report


async def next_but_beats(stream: Stream) -> Sent:
    """The next event that is news."""
    while (sent := await stream.next()).name == "heartbeat":
        pass
    return sent


# -- workers ----------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_workers_first_the_list_then_what_changes() -> None:
    """Who watches needs no list besides; records look as they do there."""
    async with Office().open() as office:
        office.work("w-1")
        await office.caught_up()
        async with office.client.watch("/workers/watch") as stream:
            first = await stream.next()
            assert (first.name, first.data["behind"]) == ("workers", None)
            assert first.data["items"] == (await office.client.get("/workers")).json
            office.work("w-2", WorkerState.RUNNING)
            came = await stream.next()
            assert (came.name, came.data["worker_id"], came.data["state"]) == ("worker", "w-2", "RUNNING")
            office.work("w-1", WorkerState.STOPPED_GRACEFUL)
            gone = await stream.next()
            assert (gone.name, gone.data) == ("gone", {"worker_id": "w-1"})
            began = anyio.current_time()
            beat = await stream.next()
            assert (beat.name, beat.data["behind"]) == ("heartbeat", None)
            assert anyio.current_time() - began == pytest.approx(5, abs=0.3)


@on_asyncio
async def test_a_worker_that_falls_silent_turns_disconnected_by_itself() -> None:
    """Nobody writes anything then."""
    async with Office().open() as office:
        office.work("w-1")
        await office.caught_up()
        async with office.client.watch("/workers/watch?scope=all") as stream:
            await stream.next()
            began = anyio.current_time()
            sent = await next_but_beats(stream)
            assert (sent.name, sent.data["state"]) == ("worker", "DISCONNECTED")
            assert 20 < anyio.current_time() - began < 26


@on_asyncio
async def test_many_changes_at_once_are_one_look() -> None:
    """A hundred workers that start together cost a hundred events, and not a hundred lists."""
    async with Office().open() as office, office.client.watch("/workers/watch?limit=500") as stream:
        assert (await stream.next()).data["items"] == []
        began = anyio.current_time()
        for number in range(100):
            office.work(f"w-{number}")
        found = [(await stream.next()).data["worker_id"] for _ in range(100)]
        assert len(set(found)) == 100
        assert anyio.current_time() - began < 1


@on_asyncio
async def test_while_nats_is_away_the_list_says_that_it_may_be_old() -> None:
    """At once, and again when it has caught up; the stream stays."""
    async with Office().open() as office, office.client.watch("/workers/watch") as stream:
        await stream.next()
        office.process.disconnect()
        sent = await stream.next()
        assert (sent.name, sent.data["behind"] is None) == ("heartbeat", False)
        office.process.reconnect()
        while sent.data["behind"] is not None:
            sent = await stream.next()


@pytest.mark.parametrize("query", ["?limit=0", "?state=x", "?scope=x", "?timeout_sec=0", "?include_hidden=perhaps"])
@on_asyncio
async def test_a_wrong_query_is_422_before_the_stream_begins(query: str) -> None:
    """With the id of the resource."""
    async with Office().open() as office:
        answer = await office.client.get(f"/workers/watch{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0019")


# -- actors -----------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_trees_first_all_then_those_that_have_changed() -> None:
    """A crash is there within a second; what has not changed is not sent."""
    async with Office().open() as office, office.client.watch("/actors/watch") as stream:
        first = await stream.next()
        assert first.name == "actors"
        assert first.data["items"] == (await office.client.get("/actors")).json
        tree = own_report()
        began = anyio.current_time()
        office.house.change(evolve(tree, tree=evolve(tree.tree, restarts=1)), evolve(tree, process="p-2"))
        found = [await stream.next() for _ in range(2)]
        assert [(sent.name, sent.data["process"]) for sent in found] == [("process", "p-1"), ("process", "p-2")]
        assert found[0].data["tree"]["restarts"] == 1
        assert anyio.current_time() - began < 1
        office.house.change(tree)
        assert [(await stream.next()).name for _ in range(2)] == ["process", "gone"]


@on_asyncio
async def test_a_process_that_was_killed_is_gone_though_it_told_nobody() -> None:
    """It is looked for after a silence."""
    async with Office().open() as office, office.client.watch("/actors/watch") as stream:
        await stream.next()
        office.house.trees = []
        sent = await stream.next()
        assert (sent.name, sent.data) == ("gone", {"process": "p-1"})


@on_asyncio
async def test_all_who_watch_share_the_looks() -> None:
    """And however often trees change, the processes are asked at most every 0.4 s."""
    office, path = Office(), "/actors/watch"
    async with office.open(), office.client.watch(path) as one, office.client.watch(path) as two:
        await one.next()
        await two.next()
        before, tree = office.house.looks, own_report()
        for number in range(100):
            office.house.change(evolve(tree, pid=number))
            await anyio.sleep(0.02)
        assert 4 <= office.house.looks - before <= 6


@on_asyncio
async def test_the_stream_of_trees_ends_with_its_connection() -> None:
    """It says so; whoever asks again hears 503 until NATS is back."""
    async with Office().open() as office, office.client.watch("/actors/watch") as stream:
        await stream.next()
        office.process.disconnect()
        (last,) = await stream.rest()
        assert (last.name, last.data["reason"].startswith("nats unavailable: ")) == ("end", True)


# -- dead letters -----------------------------------------------------------------------------------------------------


@on_asyncio
async def test_letters_the_word_that_they_have_changed() -> None:
    """At once, after one has come, and after one was dropped; with how many there are."""
    async with Office().open() as office, office.client.watch("/dlq/watch") as stream:
        first = await stream.next()
        assert (first.name, first.data["count"], first.data["newest_seq"]) == ("change", 0, None)
        seq = office.bury(Reason.FLOW_NOT_FOUND)
        sent = await next_but_beats(stream)
        assert (sent.name, sent.data["count"], sent.data["newest_seq"]) == ("change", 1, seq)
        assert sent.data["reasons"]["flow_not_found"] == 1
        assert sent.data["ts"] == virtual_clock()
        assert (await office.client.ask("DELETE", f"/dlq/{seq}")).status == 200
        assert (await next_but_beats(stream)).data["count"] == 0


@on_asyncio
async def test_a_flood_of_letters_is_a_word_a_second() -> None:
    """A broken flow makes them as fast as its runs fail."""
    async with Office().open() as office, office.client.watch("/dlq/watch") as stream:
        await stream.next()
        for _ in range(30):
            office.bury()
            await anyio.sleep(0.1)
        sent = [await stream.next()]
        while sent[-1].data["count"] < 30:
            sent.append(await stream.next())
        assert len(sent) <= 5


@on_asyncio
async def test_admins_hear_of_their_tenants_letters_and_of_nobodys() -> None:
    """As in the list."""
    async with Office(auth=True).open() as office:
        for tenant in ("a", "b", None):
            office.bury(tenant_id=tenant)
        await office.caught_up()
        async with office.key("a", admin=True)[1].watch("/dlq/watch") as stream:
            assert (await stream.next()).data["count"] == 2


# -- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/workers/watch", "/actors/watch", "/dlq/watch", "/stats/watch"])
@on_asyncio
async def test_a_stream_ends_at_its_time_and_when_the_gateway_stops(path: str) -> None:
    """Heartbeats keep it alive until then."""
    async with Office().open() as office:
        async with office.client.watch(f"{path}?timeout_sec=12") as stream:
            began = anyio.current_time()
            sent = await stream.rest()
            assert anyio.current_time() - began == pytest.approx(12, abs=1.1)
            assert [each.name for each in sent[1:]] == ["heartbeat"] * 2
        async with office.client.watch(path) as stream:
            await stream.next()
            office.parts.closing.begin()
            assert (await stream.rest())[-1].name == "end"
