"""The JetStream ports where the conformance suite cannot look: servers that die, calls cut short, strangers."""

from __future__ import annotations

import asyncio
import functools
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.to_thread
import nats
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, KeyValueConfig

from pyoco_runtime import ports
from pyoco_runtime.errors import LinkClosed, NatsUnavailable, RunExists, WheelGone, WheelSyncFailed
from pyoco_runtime.jetstream.dead_letters import NatsDeadLetters
from pyoco_runtime.jetstream.feed import BATCH, Deliver, feeding
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.puller import NatsPuller
from pyoco_runtime.jetstream.queue_inspector import NatsQueueInspector
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.jetstream.wheel_store import NatsWheelStore
from pyoco_runtime.jetstream.work_queue import ConsumerSettings, NatsWorkQueue
from pyoco_runtime.jetstream.worker_registry import NatsWorkerRegistry
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.settlement import GIVE_BACK, Ack
from pyoco_runtime.ports import CaughtUp, LinkStatus
from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.names import NAMES

PATIENCE_SEC = 20.0  # below the ack wait of 30 s: what is stuck until then fails the test


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with nats_server(tmp_path / "store") as running:
        yield running


class Bench:
    """A link that comes up again as the link actor would bring it up, the ports on it, and a stranger's client."""

    def __init__(self, server: RunningServer, link: NatsLink, stranger: Client) -> None:
        self.server = server
        self.link = link
        self.stranger = stranger
        self.js: JetStreamContext = stranger.jetstream()
        self.runs = NatsRunStore(link, NAMES.runs_bucket, 262144)
        self.queue = NatsWorkQueue(link, NAMES.work_subject_prefix, ConsumerSettings())
        self.inspector = NatsQueueInspector(link, NAMES.work_subject_prefix)
        self.wheels = NatsWheelStore(link, NAMES.wheels_bucket)

    async def kill_server(self) -> None:
        """Kill it, and return when the link has noticed."""
        await self._end_server(self.server.kill)

    async def stop_server(self) -> None:
        """Have it end with everything on disk, and return when the link has noticed."""
        await self._end_server(self.server.stop)

    async def _end_server(self, end: Callable[[], None]) -> None:
        down = anyio.Event()
        forget = self.link.on_change(down.set)
        await anyio.to_thread.run_sync(end)
        await down.wait()
        forget()

    async def start_server(self) -> None:
        """Start it again, and return when the link is up."""
        await anyio.to_thread.run_sync(self.server.start)
        await self.link.wait_up()

    async def publish(self, count: int, tag: str = "default") -> set[str]:
        """Put that many jobs on the queue; returns their run ids."""
        ids = {f"{tag}-{number}-{random.getrandbits(32)}" for number in range(count)}
        for run_id in ids:
            await self.queue.publish(job(run_id, tag))
        return ids

    async def take_all(self, expected: set[str], tag: str = "default") -> None:
        """A fresh puller must get all of these without waiting for an ack wait."""
        left = set(expected)
        with anyio.fail_after(PATIENCE_SEC):
            async with self.queue.pulling(tag) as puller:
                while left:
                    for delivery in await puller.take(100) or [await puller.wait()]:
                        assert isinstance(delivery.job, Job)
                        left.discard(delivery.job.run_id)
                        await delivery.settle(Ack())


def job(run_id: str, tag: str = "default") -> Job:
    return Job(run_id=run_id, flow_name="flow", tag=tag, submitted_at=1.0)


async def get(puller: ports.Puller, count: int) -> list[ports.Delivery]:
    """That many; a take right after a publish may come too early, since the consumer hears of it a moment later."""
    came: list[ports.Delivery] = []
    with anyio.fail_after(5):
        while len(came) < count:
            came += await puller.take(count - len(came)) or [await puller.wait()]
    return came


def snapshot(run_id: str) -> RunSnapshot:
    return RunSnapshot(run_id=run_id, flow_name="flow", status=RunStatus.PENDING)


@asynccontextmanager
async def bench(server: RunningServer) -> AsyncIterator[Bench]:
    link = NatsLink(lambda: (server.url,), "test", NAMES)
    stranger = await nats.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_ignore)
    try:
        async with anyio.create_task_group() as tasks:
            await link.connect()
            await link.prepare()
            link.declare_up()
            tasks.start_soon(_keep_up, link)
            yield Bench(server, link, stranger)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            link.declare_down("the test is over")
            await link.close()
            await stranger.close()


async def _ignore(error: Exception) -> None:
    pass


async def _keep_up(link: NatsLink) -> None:
    while True:
        match await link.next_status():
            case LinkStatus.CONNECTED:
                await link.prepare()
                link.declare_up()
            case LinkStatus.LOST:
                link.declare_down("lost")
            case LinkStatus.CLOSED:
                raise LinkClosed("closed")


Test = Callable[[Bench], Awaitable[None]]


def on_bench(test: Test) -> Callable[[RunningServer], None]:
    """Run an async test on a bench of its own."""

    @functools.wraps(test)
    def run(server: RunningServer) -> None:
        async def main() -> None:
            with anyio.fail_after(60):
                async with bench(server) as opened:
                    await test(opened)

        anyio.run(main)

    del run.__wrapped__  # pytest would look for a fixture named like the test's argument
    return run


@on_bench
async def test_the_classes_are_what_the_ports_say(bench: Bench) -> None:
    """mypy checks this; nothing happens at run time."""
    runs: ports.RunStore = bench.runs
    queue: ports.WorkQueue = bench.queue
    inspector: ports.QueueInspector = bench.inspector
    wheels: ports.WheelStore = bench.wheels
    registry: ports.WorkerRegistry = NatsWorkerRegistry(bench.link, NAMES.workers_bucket)
    letters: ports.DeadLetters = NatsDeadLetters(bench.link, NAMES.dlq_subject_prefix, NAMES.dlq_stream)
    assert all((runs, queue, inspector, wheels, registry, letters))


# -- the server dies ---------------------------------------------------------------------------------------------------


@on_bench
async def test_a_standing_wait_fails_at_once_when_the_server_dies_and_works_again_after(bench: Bench) -> None:
    """Nobody is deaf until a time-out."""
    async with bench.queue.pulling("default") as puller:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.kill_server)
            with pytest.raises(NatsUnavailable), anyio.fail_after(5):
                await puller.wait()
        await bench.start_server()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.publish, 1)
            with anyio.fail_after(5):
                delivery = await puller.wait()
        await delivery.settle(Ack())
        assert await puller.take(1) == []


@on_bench
async def test_a_delivery_outlives_the_connection_that_it_came_over(bench: Bench) -> None:
    """Settling fails while the server is away, and counts when it is back.

    After a SIGKILL the server has forgotten the deliveries of its last moments: it answers no ack about them, and
    delivers them again with the same count.
    """
    await bench.publish(2)
    async with bench.queue.pulling("default") as puller:
        first, second = await get(puller, 2)
        await bench.stop_server()
        for call in (lambda: first.settle(Ack()), first.in_progress, lambda: puller.take(1), puller.wait):
            with pytest.raises(NatsUnavailable), anyio.fail_after(1):
                await call()
        await bench.start_server()
        await first.settle(Ack())
        await second.settle(GIVE_BACK)
        assert not await bench.inspector.holds(first.attempt.seq)
        (again,) = await get(puller, 1)
        assert (again.attempt.seq, again.attempt.delivery) == (second.attempt.seq, 2)


@on_bench
async def test_a_question_fails_as_soon_as_the_connection_is_lost(bench: Bench) -> None:
    """Not after the 5 s of a time-out."""
    never = bench.stranger.new_inbox()
    await bench.stranger.subscribe(never)
    await bench.stranger.flush()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.kill_server)
        with pytest.raises(NatsUnavailable, match="connection was lost"), anyio.fail_after(3):
            await Requests(bench.link).ask(never)


@on_bench
async def test_a_feed_and_a_watch_are_lost_with_the_server_and_open_again(bench: Bench) -> None:
    """A feed is never silently blind."""
    await bench.runs.create(snapshot("a"))
    async with bench.runs.changes() as changes, bench.runs.watching() as watch, bench.wheels.watching() as wheels:
        await watch.choose(frozenset({"a"}))
        await changes.next()
        assert await changes.next() == CaughtUp()
        await bench.kill_server()
        for call in (changes.next, watch.next, wheels.changed):
            with pytest.raises(NatsUnavailable), anyio.fail_after(1):
                await call()
        await bench.start_server()
    async with bench.runs.changes() as changes:
        await changes.next()
        assert await changes.next() == CaughtUp()


# -- calls that are cut short ------------------------------------------------------------------------------------------


@on_bench
async def test_wait_and_take_cancelled_at_random_moments_leave_no_job_stuck(bench: Bench) -> None:
    """Whatever had come is given back, so that the next puller has it long before the ack wait."""
    done: set[str] = set()
    ids: set[str] = set()

    async def publish() -> None:
        for _ in range(60):
            ids.update(await bench.publish(5))
            await anyio.sleep(0.004)

    async def cut(puller: ports.Puller) -> None:
        came: list[ports.Delivery] = []
        with anyio.move_on_after(random.uniform(0, 0.004)):
            came = await random.choice((lambda: puller.take(7), lambda: _one(puller)))()
        await _ack(came, done)

    async with bench.queue.pulling("default") as puller, anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        while len(ids) < 300:
            await cut(puller)
    await bench.take_all(ids - done)


@on_bench
async def test_a_native_cancel_leaves_no_job_stuck_either(bench: Bench) -> None:
    """An asyncio host knows nothing of cancel scopes."""
    done: set[str] = set()
    ids = await bench.publish(200)

    async def cut(puller: ports.Puller) -> None:
        call = asyncio.ensure_future(random.choice((lambda: puller.take(7), lambda: _one(puller)))())
        await asyncio.sleep(random.uniform(0, 0.002))
        call.cancel()
        (result,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(result, list):
            await _ack(result, done)

    async with bench.queue.pulling("default") as puller:
        for _ in range(100):
            await cut(puller)
    await bench.take_all(ids - done)


async def _one(puller: ports.Puller) -> list[ports.Delivery]:
    return [await puller.wait()]


async def _ack(deliveries: list[ports.Delivery], done: set[str]) -> None:
    for delivery in deliveries:
        await delivery.settle(Ack())
        assert isinstance(delivery.job, Job)
        done.add(delivery.job.run_id)


@on_bench
async def test_a_job_that_nobody_waits_for_any_more_is_given_back(bench: Bench) -> None:
    """A late answer to an older request is neither lost nor mistaken."""
    async with bench.queue.pulling("default") as puller:
        assert isinstance(puller, NatsPuller)
        assert await puller.take(1) == []
        inbox = puller._inbox
        assert inbox is not None
        await inbox.send(puller._subject, b'{"batch":1,"expires":5000000000}', "older")
        await bench.publish(1)
        with anyio.fail_after(5):
            while not inbox._arrived:
                await bench.runs.get("a-round-trip")
            (again,) = await get(puller, 1)
        assert puller.strays == 1
        assert again.attempt.delivery == 2


@on_bench
async def test_the_drain_of_nats_py_still_sends_its_ping_before_the_unsub(bench: Bench) -> None:
    """Pins why `untap` is not Subscription.drain(), which loses what comes in between; fails when that is mended."""
    client = bench.stranger
    transport: Any = client._transport
    write, writelines = transport.write, transport.writelines
    sent = bytearray()

    def heard_write(data: bytes) -> None:
        sent.extend(data)
        write(data)

    def heard_writelines(data: list[bytes]) -> None:
        sent.extend(b"".join(data))
        writelines(data)

    transport.write, transport.writelines = heard_write, heard_writelines
    subscription: Any = await client.subscribe("somewhere")
    await subscription.drain()
    assert sent.index(b"PING") < sent.index(b"UNSUB")


# -- what others have set up -------------------------------------------------------------------------------------------


@on_bench
async def test_an_existing_consumer_is_respected(bench: Bench) -> None:
    """Its settings stay, and the deliveries tell them."""
    config = ConsumerConfig(
        durable_name="pyoco_workers_default",
        filter_subject="pyoco.work.default",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=7,
        max_deliver=2,
        max_ack_pending=3,
    )
    await bench.js.add_consumer("PYOCO_WORK", config)
    await bench.publish(1)
    async with bench.queue.pulling("default") as puller:
        (delivery,) = await get(puller, 1)
        assert (delivery.ack_wait_sec, delivery.is_last) == (7.0, False)
        await delivery.settle(GIVE_BACK)
        (delivery,) = await get(puller, 1)
        assert delivery.is_last
    found = (await bench.js.consumer_info("PYOCO_WORK", "pyoco_workers_default")).config
    assert (found.ack_wait, found.max_deliver, found.max_ack_pending) == (7.0, 2, 3)


@on_bench
async def test_a_missing_consumer_is_made_as_the_contract_says(bench: Bench) -> None:
    """AckWait 30 s, MaxDeliver 20, MaxAckPending 200, explicit ack; and made again after somebody removed it."""
    async with bench.queue.pulling("gpu") as puller:
        found = (await bench.js.consumer_info("PYOCO_WORK", "pyoco_workers_gpu")).config
        assert (found.ack_wait, found.max_deliver, found.max_ack_pending) == (30.0, 20, 200)
        assert (found.durable_name, found.filter_subject) == ("pyoco_workers_gpu", "pyoco.work.gpu")
        assert found.ack_policy == AckPolicy.EXPLICIT
        await bench.js.delete_consumer("PYOCO_WORK", "pyoco_workers_gpu")
        for call in (lambda: puller.take(1), puller.wait):
            with pytest.raises(NatsUnavailable), anyio.fail_after(5):
                await call()
    await bench.take_all(await bench.publish(1, "gpu"), "gpu")


@on_bench
async def test_a_consumer_that_is_full_gives_nothing_and_keeps_nothing(bench: Bench) -> None:
    """The server is silent while MaxAckPending is reached; the request must not stay behind."""
    config = ConsumerConfig(
        durable_name="pyoco_workers_default",
        filter_subject="pyoco.work.default",
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=30,
        max_ack_pending=2,
    )
    await bench.js.add_consumer("PYOCO_WORK", config)
    await bench.publish(3)
    async with bench.queue.pulling("default") as puller, bench.queue.pulling("default") as other:
        first, second = await get(puller, 2)
        assert await puller.take(3) == []
        await first.settle(Ack())
        (third,) = await get(other, 1)  # not on its way to the puller that asked before
        assert third.attempt.delivery == 1
        await second.settle(Ack())
        await third.settle(Ack())


@on_bench
async def test_a_bucket_without_direct_gets_is_read_too(bench: Bench) -> None:
    """As the peer makes it."""
    await bench.js.create_key_value(KeyValueConfig(bucket="peers", history=1, direct=False))
    runs = NatsRunStore(bench.link, "peers", 262144)
    revision = await runs.create(snapshot("a"))
    for _ in range(2):
        found = await runs.get("a")
        assert found is not None
        assert found.revision == revision
    assert await runs.get("b") is None


@on_bench
async def test_a_run_id_that_is_no_key_is_absent_and_cannot_be_stored(bench: Bench) -> None:
    """Run ids come from strangers: none of them may reach the wire as something else, or cost the connection."""
    for run_id in ("", "a b", "a\n", "a\r\nPUB x 0\r\n\r\n", ".a", "a.", "a..b", "a*", ">", "é", "x" * 5000):
        assert await bench.runs.get(run_id) is None
        with pytest.raises(ValueError, match="cannot be stored"):
            await bench.runs.create(snapshot(run_id))
    async with bench.runs.watching() as watch:
        await watch.choose(frozenset({">", "a b", "x" * 5000}))
    assert bench.link.is_up


@on_bench
async def test_a_removed_run_can_be_created_again_over_its_marker(bench: Bench) -> None:
    """A delete marker is absent, not a conflict."""
    revision = await bench.runs.create(snapshot("a"))
    with pytest.raises(RunExists):
        await bench.runs.create(snapshot("a"))
    await bench.runs.remove("a", revision)
    assert await bench.runs.get("a") is None
    await bench.runs.create(snapshot("a"))
    kv = await bench.js.key_value(NAMES.runs_bucket)
    await kv.purge("a")
    assert await bench.runs.get("a") is None
    await bench.runs.create(snapshot("a"))


@on_bench
async def test_a_slow_reader_of_the_feed_holds_no_more_than_a_batch(bench: Bench) -> None:
    """Memory does not grow with the number of stored runs."""
    for number in range(3 * BATCH):
        await bench.runs.create(snapshot(f"run-{number}"))
    requests = Requests(bench.link)
    async with feeding(bench.link, requests, "KV_pyoco_runs", "$KV.pyoco_runs.>", Deliver.LAST_PER_SUBJECT) as feed:
        for _ in range(3 * BATCH):
            await feed.next()
            await requests.call("$JS.API.INFO")  # all that was sent before has arrived
            assert len(feed._inbox._arrived) <= BATCH
        assert feed.is_caught_up
    consumers = await bench.js.consumers_info("KV_pyoco_runs")
    assert consumers == []


# -- the inspector -----------------------------------------------------------------------------------------------------


@on_bench
async def test_a_stuck_job_is_told_from_one_that_somebody_works_on(bench: Bench) -> None:
    """By the server's advisory while others are pending, by the numbers when none is; never a live one."""
    queue = NatsWorkQueue(bench.link, "pyoco.work", ConsumerSettings(ack_wait_sec=0.3, max_deliver=2))
    assert await bench.inspector.stuck() == []
    await queue.publish(job("doomed"))
    await queue.publish(job("alive"))
    async with queue.pulling("default") as puller:
        doomed, alive = await get(puller, 2)
        for _ in range(2):  # the second time nobody gets it: its deliveries are used up
            for _ in range(4):
                await anyio.sleep(0.1)
                await alive.in_progress()
            await puller.take(1)
        (found,) = await bench.inspector.stuck()
        assert (found.seq, found.tag, found.subject) == (doomed.attempt.seq, "default", "pyoco.work.default")
        await alive.settle(Ack())
    assert [each.seq for each in await NatsQueueInspector(bench.link, "pyoco.work").stuck()] == [found.seq]
    await bench.inspector.discard(found.seq)
    await bench.inspector.discard(found.seq)
    await bench.inspector.discard(10_000)
    assert await bench.inspector.stuck() == []


# -- wheels ------------------------------------------------------------------------------------------------------------


@on_bench
async def test_a_damaged_wheel_is_not_taken_for_a_whole_one(bench: Bench) -> None:
    """The digest decides, and no half file stays."""
    store = await bench.js.object_store(NAMES.wheels_bucket)
    await store.put("a.whl", random.randbytes(500_000))
    info = await store.get_info("a.whl")
    with TemporaryDirectory() as made:
        folder = Path(made)
        await bench.wheels.download("a.whl", folder / "a.whl")
        assert (folder / "a.whl").stat().st_size == 500_000
        first = (await bench.js.get_last_msg("OBJ_pyoco_wheels", f"$O.pyoco_wheels.C.{info.nuid}")).seq
        assert first is not None
        await bench.js.delete_msg("OBJ_pyoco_wheels", first)
        with pytest.raises(WheelGone):
            await bench.wheels.download("a.whl", folder / "b.whl")
        await bench.js.publish(f"$O.pyoco_wheels.C.{info.nuid}", b"something else")
        with pytest.raises(WheelSyncFailed):
            await bench.wheels.download("a.whl", folder / "b.whl")
        assert os.listdir(folder) == ["a.whl"]
