"""GET /runs/{id}/watch and GET /runs/watch, in virtual time."""

from __future__ import annotations

import logging

import anyio
import pytest

from pyoco_runtime.gateway.sse import HEARTBEAT_SEC
from pyoco_runtime.model.run import RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.run_board import FOLLOWER_CAPACITY
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Office, Stream, on_asyncio


async def status(stream: Stream) -> str:
    """Of the next snapshot."""
    sent = await stream.next()
    assert sent.name == "snapshot"
    return str(sent.data["snapshot"]["status"])


# -- one run ----------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_first_the_snapshot_then_every_change() -> None:
    """At once, each with its revision as id."""
    async with Office().open() as office:
        revision = office.write("a", RunStatus.PENDING)
        async with office.client.watch("/runs/a/watch") as stream:
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            assert stream.headers["cache-control"] == "no-cache"
            first = await stream.next()
            assert (first.name, first.id) == ("snapshot", revision)
            assert first.data.keys() == {"run_id", "snapshot", "ts", "waiting"}
            assert (first.data["run_id"], first.data["ts"]) == ("a", virtual_clock())
            assert first.data["snapshot"]["status"] == "PENDING"
            for each in (RunStatus.RUNNING, RunStatus.COMPLETED):
                began = anyio.current_time()
                revision = office.write("a", each)
                sent = await stream.next()
                assert (sent.id, sent.data["snapshot"]["status"]) == (revision, each)
                assert anyio.current_time() == began


@on_asyncio
async def test_the_graph_comes_first_and_then_when_it_has_changed() -> None:
    """It may be large, and a run with many tasks changes often."""
    graph, other = ({"nodes": [{"id": name, "kind": "task"}], "edges": []} for name in "ab")
    async with Office().open() as office:
        office.write("a", RunStatus.PENDING)
        async with office.client.watch("/runs/a/watch") as stream:
            assert (await stream.next()).data["snapshot"]["graph"] is None
            for stored, told in [(graph, graph), (graph, "not told"), (other, other), (None, None)]:
                office.write("a", graph=stored)
                assert (await stream.next()).data["snapshot"].get("graph", "not told") == told
        office.write("a", graph=graph)
        async with office.client.watch("/runs/a/watch") as stream:
            assert (await stream.next()).data["snapshot"]["graph"] == graph


@on_asyncio
async def test_what_the_run_waits_for_is_told_also_when_nothing_is_written() -> None:
    """A worker that comes changes no run that waits for it."""
    async with Office().open() as office:
        office.write("a", RunStatus.PENDING)
        async with office.client.watch("/runs/a/watch") as stream:
            assert (await stream.next()).data["waiting"] == {"code": "no_worker", "tag": "default"}
            office.work(tags=("default",))
            beat = await stream.next()
            assert (beat.name, beat.data["waiting"]) == ("heartbeat", {"code": "queued", "tag": "default"})


@pytest.mark.parametrize(
    ("query", "has_records"), [("", False), ("?include=records", True), ("?include=x&include=all", True)]
)
@on_asyncio
async def test_records_on_request(query: str, has_records: bool) -> None:
    """In the first snapshot and in all later ones."""
    async with Office().open() as office:
        records = {"t": TaskRecord(state=TaskStatus.RUNNING)}
        office.write("a", task_records=records)
        async with office.client.watch(f"/runs/a/watch{query}") as stream:
            for _ in range(2):
                assert ("task_records" in (await stream.next()).data["snapshot"]) is has_records
                office.write("a", task_records=records)


@on_asyncio
async def test_a_heartbeat_after_every_five_seconds_of_silence() -> None:
    """Counted from the last event; it carries no id."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch("/runs/a/watch") as stream:
            began = anyio.current_time()
            await stream.next()
            for n in (1, 2):
                beat = await stream.next()
                assert (beat.name, beat.id) == ("heartbeat", None)
                assert (beat.data["run_id"], beat.data["ts"]) == ("a", virtual_clock())
                assert anyio.current_time() - began == pytest.approx(n * HEARTBEAT_SEC)
            await anyio.sleep(3)
            office.write("a")
            assert (await stream.next()).name == "snapshot"
            assert (await stream.next()).name == "heartbeat"
            assert anyio.current_time() - began == pytest.approx(13 + HEARTBEAT_SEC)


@on_asyncio
async def test_changes_that_are_not_told_do_not_put_off_the_heartbeat() -> None:
    """Silence is what the client hears."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch(f"/runs/a/watch?since={virtual_clock() + 1e6}") as stream:
            began = anyio.current_time()
            for _ in range(4):
                await anyio.sleep(2)
                office.write("a")
            assert (await stream.next()).name == "heartbeat"
            assert anyio.current_time() - began == pytest.approx(8), "sent at 5, read at 8"


@pytest.mark.parametrize(("query", "timeout_sec"), [("", 60), ("?timeout_sec=1", 1), ("?timeout_sec=600", 600)])
@on_asyncio
async def test_a_stream_ends_at_its_time(query: str, timeout_sec: float) -> None:
    """Also when the run changes all the time, and without a word."""
    async with Office().open() as office:
        office.write("a")
        began = anyio.current_time()
        async with office.client.watch(f"/runs/a/watch{query}") as stream:
            events = await stream.rest()
            assert anyio.current_time() - began == pytest.approx(timeout_sec)
            assert {each.name for each in events} <= {"snapshot", "heartbeat"}
            assert len(events) == 1 + (timeout_sec - 1) // HEARTBEAT_SEC
        async with office.client.watch("/runs/a/watch?timeout_sec=3") as stream:
            for _ in range(30):
                office.write("a")
                await anyio.sleep(0.2)
            assert {each.name for each in await stream.rest()} == {"snapshot"}
    assert office.parts.runs.followers == 0


@pytest.mark.parametrize(
    "query", ["timeout_sec=0", "timeout_sec=601", "timeout_sec=x", "timeout_sec=1.5", "since=x", "since=nan"]
)
@on_asyncio
async def test_a_wrong_query_is_422(query: str) -> None:
    """Before the stream begins."""
    async with Office().open() as office:
        office.write("a")
        answer = await office.client.get(f"/runs/a/watch?{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0002")
        assert answer.json["detail"].startswith(f"invalid request: {query.partition('=')[0]}: ")


@on_asyncio
async def test_since_leaves_out_what_is_older() -> None:
    """By `updated_at`; that moment itself counts as new."""
    async with Office().open() as office:
        office.write("a", updated_at=5.0)
        async with office.client.watch("/runs/a/watch?since=6") as stream:
            await anyio.sleep(1)
            office.write("a", RunStatus.CANCELLING, updated_at=5.5)
            await anyio.sleep(1)
            office.write("a", RunStatus.COMPLETED, updated_at=6.0)
            assert await status(stream) == "COMPLETED"
        async with office.client.watch("/runs/a/watch?since=6") as stream:
            assert await status(stream) == "COMPLETED"


@on_asyncio
async def test_who_comes_back_is_told_only_what_is_new() -> None:
    """Last-Event-ID is the revision of the last event."""
    async with Office().open() as office:
        revision = office.write("a")
        client = office.client.with_headers(Last_Event_ID=str(revision))
        async with client.watch("/runs/a/watch") as stream:
            assert (await stream.next()).name == "heartbeat"
        office.write("a", RunStatus.COMPLETED)
        async with client.watch("/runs/a/watch") as stream:
            assert await status(stream) == "COMPLETED"


@pytest.mark.parametrize("last", ["", "x", "-1", "1.5", "9" * 30, "0", "7777"])
@on_asyncio
async def test_a_last_event_id_that_says_nothing_is_ignored(last: str) -> None:
    """The snapshot is sent."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.with_headers(Last_Event_ID=last).watch("/runs/a/watch") as stream:
            assert await status(stream) == "RUNNING"


@on_asyncio
async def test_the_stream_of_a_run_that_is_removed_ends() -> None:
    """There is nothing more to tell."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch("/runs/a/watch") as stream:
            await stream.next()
            began = anyio.current_time()
            office.remove("a")
            assert await stream.rest() == []
            assert anyio.current_time() == began


@on_asyncio
async def test_a_slow_watcher_of_one_run_gets_the_latest() -> None:
    """It is never dropped, and nothing piles up for it."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch("/runs/a/watch") as stream:
            await stream.next()
            stream.hold()
            for _ in range(3 * FOLLOWER_CAPACITY):
                office.write("a")
            office.write("a", RunStatus.COMPLETED)
            await office.caught_up()
            stream.let_go()
            seen = [await status(stream)]
            while seen[-1] != "COMPLETED":
                seen.append(await status(stream))
            assert len(seen) <= 3


@on_asyncio
async def test_a_watcher_outlives_a_loss_of_nats() -> None:
    """Heartbeats meanwhile; then what has happened, without a new request."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch("/runs/a/watch") as stream:
            await stream.next()
            office.process.disconnect()
            office.write("a", RunStatus.COMPLETED)
            assert (await stream.next()).name == "heartbeat"
            office.process.reconnect()
            assert await status(stream) == "COMPLETED"


@on_asyncio
async def test_nats_away_between_the_two_reads_ends_the_stream_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """The status is sent already; the client connects again and is told then."""
    async with Office().open() as office:
        office.write("a")
        office.faults.next("run_store.get", None, Lost.BEFORE)
        with caplog.at_level(logging.ERROR):
            async with office.client.watch("/runs/a/watch") as stream:
                assert stream.status == 200
                assert [each.name for each in await stream.rest()] == ["end"]
        assert not caplog.records
        assert office.parts.runs.followers == 0


# -- how streams end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/runs/a/watch", "/runs/watch"])
@on_asyncio
async def test_a_gateway_that_stops_says_good_bye(path: str) -> None:
    """An event `end`, at once; the client connects again."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch(path) as stream:
            await stream.next()
            await anyio.sleep(1)
            began = anyio.current_time()
            office.parts.closing.begin()
            events = await stream.rest()
            assert [each.name for each in events] == ["end"]
            assert "connect again" in events[0].data["reason"]
            assert anyio.current_time() == began
        assert office.parts.runs.followers == 0


@pytest.mark.parametrize("path", ["/runs/a/watch", "/runs/watch"])
@on_asyncio
async def test_a_client_that_goes_away_leaves_nothing_behind(path: str) -> None:
    """No follower, no task."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch(path) as stream:
            await stream.next()
            assert office.parts.runs.followers == 1
        await office.caught_up()
        assert office.parts.runs.followers == 0


@pytest.mark.parametrize("path", ["/runs/a/watch", "/runs/watch"])
@on_asyncio
async def test_the_head_of_a_stream_is_answered_at_once(path: str) -> None:
    """Nobody would read the events."""
    async with Office().open() as office:
        office.write("a")
        began = anyio.current_time()
        answer = await office.client.ask("HEAD", path)
        assert (answer.status, answer.headers["content-type"], answer.data) == (200, "text/event-stream", b"")
        assert anyio.current_time() == began


# -- the list ---------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_changes_of_the_list() -> None:
    """First where we are, then each change with a summary, and the word that a run is gone."""
    async with Office().open() as office:
        before = office.write("old")
        await office.caught_up()
        async with office.client.watch("/runs/watch") as stream:
            ready = await stream.next()
            assert (ready.name, ready.id) == ("ready", before)
            assert ready.data == {"revision": before, "behind": None, "ts": virtual_clock()}
            revision = office.write("a", params={"x": 1}, flow_name="g")
            sent = await stream.next()
            assert (sent.name, sent.id, sent.data["run_id"]) == ("run", revision, "a")
            assert (sent.data["flow_name"], "params" in sent.data) == ("g", False)
            office.remove("a")
            gone = await stream.next()
            assert (gone.name, gone.data) == ("gone", {"run_id": "a"})
            beat = await stream.next()
            assert (beat.name, beat.id, beat.data["revision"]) == ("heartbeat", None, gone.id)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("status=RUNNING", {}),
        ("flow=f", {"flow_name": "g"}),
        ("tag=default", {"tag": "gpu"}),
        ("workflow_yaml_sha256=abc", {"workflow_yaml_sha256": "abd"}),
    ],
)
@on_asyncio
async def test_the_filters_of_the_list_count(query: str, fields: dict[str, str]) -> None:
    """A run that does not match is not told of; one that leaves the filter is gone."""
    async with Office().open() as office, office.client.watch(f"/runs/watch?{query}") as stream:
        await stream.next()
        office.write("other", RunStatus.COMPLETED, **fields)
        office.write("a", workflow_yaml_sha256="abc")
        sent = await stream.next()
        assert (sent.name, sent.data["run_id"]) == ("run", "a")
        office.write("a", RunStatus.COMPLETED, **fields)
        gone = await stream.next()
        assert (gone.name, gone.data) == ("gone", {"run_id": "a"})
        office.write("a", RunStatus.COMPLETED, error="again", **fields)
        assert (await stream.next()).name == "heartbeat"


@pytest.mark.parametrize(
    ("query", "err_id"),
    [("status=STALE", "17"), ("updated_after=x", "17"), ("timeout_sec=0", "02"), ("timeout_sec=601", "02")],
)
@on_asyncio
async def test_a_wrong_query_of_the_list_is_422(query: str, err_id: str) -> None:
    """As in GET /runs."""
    async with Office().open() as office:
        answer = await office.client.get(f"/runs/watch?{query}")
        assert (answer.status, answer.err_id) == (422, f"ERR-PYOCO-00{err_id}")


@on_asyncio
async def test_the_stream_of_the_list_ends_at_its_time() -> None:
    """With heartbeats on the way."""
    async with Office().open() as office:
        began = anyio.current_time()
        async with office.client.watch("/runs/watch?timeout_sec=12") as stream:
            assert [each.name for each in await stream.rest()] == ["ready", "heartbeat", "heartbeat"]
            assert anyio.current_time() - began == pytest.approx(12)


@on_asyncio
async def test_who_comes_back_to_the_list_misses_nothing() -> None:
    """What happened meanwhile is told in order, whatever became of the stream on the way."""
    async with Office().open() as office:
        last = office.write("old")
        await office.caught_up()
        revisions = [office.write(f"r-{n}") for n in range(4)]
        await office.caught_up()
        seen: list[int] = []
        for _ in revisions:
            client = office.client.with_headers(Last_Event_ID=str(last))
            async with client.watch("/runs/watch") as stream:
                ready = await stream.next()
                assert ready.name == "ready"
                last = ready.id if ready.id is not None else last
            client = office.client.with_headers(Last_Event_ID=str(last))
            async with client.watch("/runs/watch") as stream:
                await stream.next()
                sent = await stream.next()
                assert sent.id is not None
                seen.append(sent.id)
                last = sent.id
        assert seen == revisions


@pytest.mark.parametrize("last", ["1000000", "0"])
@on_asyncio
async def test_who_comes_back_too_late_is_told_so(last: str) -> None:
    """Then everything has to be looked at anew."""
    async with Office().open() as office:
        for n in range(1500):
            office.write(f"r-{n % 7}")
        await office.caught_up()
        async with office.client.with_headers(Last_Event_ID=last).watch("/runs/watch") as stream:
            events = await stream.rest()
            assert [each.name for each in events] == ["ready", "dropped"]
            assert "anew" in events[1].data["reason"]
        # the id that it comes back with is one that is known
        async with office.client.with_headers(Last_Event_ID=str(events[1].id)).watch("/runs/watch") as stream:
            await stream.next()
            office.write("a")
            assert (await stream.next()).data["run_id"] == "a"


@on_asyncio
async def test_a_slow_client_of_the_list_is_dropped_and_costs_the_others_nothing() -> None:
    """The fast one hears of everything."""
    async with Office().open() as office, office.client.watch("/runs/watch") as slow:
        await slow.next()
        slow.hold()
        async with office.client.watch("/runs/watch") as fast:
            await fast.next()
            count = FOLLOWER_CAPACITY + 10
            for n in range(count):
                office.write(f"r-{n}")
                assert (await fast.next()).data["run_id"] == f"r-{n}"
        slow.let_go()
        names = [each.name for each in await slow.rest()]
        assert names[-1] == "dropped"
        assert len(names) < 5


@on_asyncio
async def test_a_stream_that_begins_while_the_index_loads_says_so() -> None:
    """`behind` in `ready`; once the first picture is complete it has to look anew."""
    office = Office(connected=False)
    async with office.open():
        office.write("a")
        office.process.reconnect()
        async with office.client.watch("/runs/watch") as stream:
            assert (await stream.next()).data["behind"]
            assert [each.name for each in await stream.rest()] == ["dropped"]


@on_asyncio
async def test_a_hundred_watchers_hear_of_one_change() -> None:
    """From one feed."""
    async with Office().open() as office:
        office.write("a")
        heard: list[str] = []

        async def one() -> None:
            async with office.client.watch("/runs/a/watch") as stream:
                await stream.next()
                heard.append(await status(stream))

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one)
            while office.parts.runs.followers < 100:  # noqa: ASYNC110 - virtual time
                await anyio.sleep(0.01)
            await anyio.sleep(1)
            office.write("a", RunStatus.COMPLETED)
        assert heard == ["COMPLETED"] * 100
        assert len(office.server.runs.bucket._listeners) == 1
