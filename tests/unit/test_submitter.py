"""Taking runs in, and what is left when something fails on the way."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.errors import KeyReused, NatsUnavailable, PyocoError
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.submission import Submission, fingerprint, ids_of_batch
from pyoco_runtime.model.transition import cancelling
from pyoco_runtime.ports import Promise
from pyoco_runtime.submitter import COPY_SEC, UNDO_ALL_SEC, UNDO_SEC, Accepted, Submitter
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream, virtual_clock
from tests.unit.actors.support import in_virtual_time

WANTED = Submission(flow_name="f", params={"x": 1}, tag="gpu", tags=("gpu",))
SOMEBODY = Principal("key-1234", "demo", False)
REFUSED = "the snapshot of a run that was refused cannot be removed"


class Desk:
    """A server and a submitter on it, whose runs are r-1, r-2, ..."""

    def __init__(self) -> None:
        self.server = MemoryJetStream()
        self.faults = self.server.faults
        self.process = self.server.process("gateway")
        self._count = 0
        self.submitter = self.another(self.process)

    def another(self, process: Any) -> Submitter:
        """One of another process, which counts on."""
        return Submitter(process.run_store, process.work_queue, process.promises, virtual_clock, self._next)

    def _next(self) -> str:
        self._count += 1
        return f"r-{self._count}"

    def stored(self) -> list[str]:
        return [entry.key for entry in self.server.runs.bucket.entries() if entry.value is not None]

    def queued(self) -> int:
        return len(self.server.work.messages)


@in_virtual_time
async def test_snapshot_first_then_the_job() -> None:
    """Both carry who wanted it; the job names the revision of the snapshot that was written."""
    desk = Desk()
    accepted = await desk.submitter.submit(WANTED, SOMEBODY)
    assert accepted == Accepted("r-1", is_new=True)
    stored = desk.server.snapshot("r-1")
    assert stored is not None
    assert (stored.snapshot.status, stored.snapshot.tenant_id) == (RunStatus.PENDING, "demo")
    assert desk.submitter.last_revision == stored.revision
    names = [type(event).__name__ for event in desk.server.log.facts]
    assert names == ["SnapshotStored", "JobPublished"]


@pytest.mark.parametrize(
    ("create", "publish", "remove", "is_left", "jobs"),
    [
        (Lost.BEFORE, None, None, False, 0),
        (Lost.AFTER, None, None, False, 0),
        (Lost.AFTER, None, Lost.BEFORE, True, 0),
        (Lost.AFTER, None, Lost.AFTER, False, 0),
        (None, Lost.BEFORE, None, False, 0),
        (None, Lost.AFTER, None, False, 1),
        (None, Lost.BEFORE, Lost.BEFORE, True, 0),
        (None, Lost.BEFORE, Lost.AFTER, False, 0),
        (None, Lost.AFTER, Lost.BEFORE, True, 1),
        (None, Lost.AFTER, Lost.AFTER, False, 1),
    ],
)
@pytest.mark.parametrize("is_batch", [False, True])
@in_virtual_time
async def test_what_fails_is_taken_back(
    create: Lost | None,
    publish: Lost | None,
    remove: Lost | None,
    is_left: bool,
    jobs: int,
    is_batch: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The caller gets an error; if the snapshot may be left, the log says so with MSG-0004."""
    desk = Desk()
    desk.faults.next("run_store.create", create)
    desk.faults.next("queue.publish", publish)
    desk.faults.next("run_store.remove", remove)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        if is_batch:
            (result,) = await desk.submitter.submit_all([WANTED], None)
            assert isinstance(result, NatsUnavailable)
        else:
            with pytest.raises(NatsUnavailable):
                await desk.submitter.submit(WANTED, None)
    assert (desk.stored(), desk.queued()) == (["r-1"] if is_left else [], jobs)
    found = [(r.getMessage().startswith(REFUSED), r.run_id, r.err_id, r.msg_id) for r in caplog.records]  # type: ignore[attr-defined]  # extra
    assert found == ([(True, "r-1", "ERR-PYOCO-0004", "MSG-PYOCO-0004")] if remove else [])


@pytest.mark.parametrize("operation", ["run_store.remove", "run_store.get"])
@in_virtual_time
async def test_taking_back_has_a_limit_of_time(operation: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The caller is not kept waiting, and the log says what may be left."""
    desk = Desk()
    if operation == "run_store.get":
        desk.faults.next("run_store.create", Lost.AFTER)
    else:
        desk.faults.next("queue.publish", Lost.BEFORE)
    desk.faults.next(operation, Slow(4.0))
    began = anyio.current_time()
    caplog.clear()
    with caplog.at_level(logging.WARNING), pytest.raises(NatsUnavailable):
        await desk.submitter.submit(WANTED, None)
    assert anyio.current_time() - began == pytest.approx(UNDO_SEC)
    assert [record.msg_id for record in caplog.records] == ["MSG-PYOCO-0004"]  # type: ignore[attr-defined]  # extra


@in_virtual_time
async def test_taking_back_a_batch_has_one_limit_for_all(caplog: pytest.LogCaptureFixture) -> None:
    """And each that may be left is in the log."""
    desk = Desk()
    desk.faults.rate("queue.publish", Lost.BEFORE, 1.0)
    desk.faults.rate("run_store.remove", Slow(4.0), 1.0)
    began = anyio.current_time()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        results = await desk.submitter.submit_all([WANTED] * 50, None)
    assert all(isinstance(each, NatsUnavailable) for each in results)
    assert anyio.current_time() - began == pytest.approx(UNDO_ALL_SEC)
    assert {record.run_id for record in caplog.records} >= set(desk.stored())  # type: ignore[attr-defined]  # extra


@in_virtual_time
async def test_whoever_is_cancelled_takes_back_all_the_same() -> None:
    """The client has gone away: the clean-up is not cut off."""
    desk = Desk()
    desk.faults.next("queue.publish", Lost.BEFORE)
    desk.faults.next("run_store.remove", Slow(0.5))
    with anyio.CancelScope() as scope:
        scope.deadline = anyio.current_time() + 0.1
        with pytest.raises(NatsUnavailable):
            await desk.submitter.submit(WANTED, None)
    assert desk.stored() == []


@in_virtual_time
async def test_a_run_that_a_worker_has_claimed_is_not_taken_back() -> None:
    """The answer of the queue was lost, not the job: it will have its end."""
    desk = Desk()
    desk.faults.next("queue.publish", Slow(4.9))
    desk.faults.next("queue.publish", None)

    async def claim() -> None:
        await anyio.sleep(1)
        stored = desk.server.snapshot("r-1")
        assert stored is not None
        await desk.process.run_store.update(evolve(stored.snapshot, status=RunStatus.RUNNING), stored.revision)
        desk.process.disconnect()
        desk.process.reconnect()

    async with anyio.create_task_group() as group:
        group.start_soon(claim)
        with pytest.raises(NatsUnavailable):
            await desk.submitter.submit(WANTED, None)
    assert desk.stored() == ["r-1"]


@in_virtual_time
async def test_nats_away_is_told_at_once() -> None:
    """Nothing is tried for long."""
    desk = Desk()
    desk.process.disconnect()
    began = anyio.current_time()
    with pytest.raises(NatsUnavailable):
        await desk.submitter.submit(WANTED, None)
    with pytest.raises(NatsUnavailable):
        await desk.submitter.submit(WANTED, None, "k")
    assert anyio.current_time() == began


# -- many -------------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_each_of_many_by_itself() -> None:
    """Faults of one are told in its place."""
    desk = Desk()
    desk.faults.next("run_store.create", None, Lost.BEFORE, None, Lost.AFTER, None)
    desk.faults.next("queue.publish", None, Lost.BEFORE, None)
    results = await desk.submitter.submit_all([WANTED] * 5, SOMEBODY)
    kinds = [isinstance(each, PyocoError) for each in results]
    assert kinds == [False, True, True, True, False]
    assert desk.stored() == [each.run_id for each in results if isinstance(each, Accepted)] == ["r-1", "r-5"]
    stored = desk.server.snapshot("r-5")
    assert stored is not None
    assert desk.submitter.last_revision == stored.revision


# -- idempotency keys -------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_key_gives_one_run() -> None:
    """Of this process or another, now or later."""
    desk = Desk()
    other = desk.another(desk.server.process("other gateway"))
    first = await desk.submitter.submit(WANTED, SOMEBODY, "k")
    assert first == Accepted("r-1", is_new=True)
    assert await desk.submitter.submit(WANTED, SOMEBODY, "k") == Accepted("r-1", is_new=False)
    assert await other.submit(WANTED, SOMEBODY, "k") == Accepted("r-1", is_new=False)
    assert (desk.stored(), desk.queued()) == (["r-1"], 1)


@in_virtual_time
async def test_a_key_of_a_run_that_is_over_gives_that_run() -> None:
    """It is not run again."""
    desk = Desk()
    await desk.submitter.submit(WANTED, None, "k")
    stored = desk.server.snapshot("r-1")
    assert stored is not None
    await desk.process.run_store.update(cancelling(stored.snapshot, 5.0, None), stored.revision)
    desk.server.work.messages.clear()
    assert await desk.submitter.submit(WANTED, None, "k") == Accepted("r-1", is_new=False)
    assert desk.queued() == 0


@pytest.mark.parametrize(
    "other",
    [
        evolve(WANTED, flow_name="g"),
        evolve(WANTED, params={}),
        evolve(WANTED, tag="t"),
        evolve(WANTED, tags=()),
        evolve(WANTED, workflow_yaml="text"),
    ],
)
@in_virtual_time
async def test_a_key_with_another_request_is_refused(other: Submission) -> None:
    """And says that a new key is needed."""
    desk = Desk()
    await desk.submitter.submit(WANTED, None, "k")
    with pytest.raises(KeyReused, match="use a new key"):
        await desk.submitter.submit(other, None, "k")
    assert desk.stored() == ["r-1"]


@in_virtual_time
async def test_tenants_have_their_own_keys() -> None:
    """Also whoever has no tenant, and whatever the key looks like."""
    desk = Desk()
    callers = [None, Principal("k1", "a", False), Principal("k2", "b", False)]
    ids = [(await desk.submitter.submit(WANTED, each, "k")).run_id for each in callers]
    assert ids == ["r-1", "r-2", "r-3"]


@pytest.mark.parametrize("had_snapshot", [False, True])
@in_virtual_time
async def test_a_promise_of_a_process_that_died_is_kept_by_the_next(had_snapshot: bool) -> None:
    """Before or after the snapshot: the retry finishes what was begun, and the run has its job."""
    desk = Desk()
    promise = Promise("promised", fingerprint(WANTED), virtual_clock())
    await desk.process.promises.claim("demo\nk", promise)
    if had_snapshot:
        desk.process.work_queue.publish = _die  # type: ignore[method-assign]  # the process ends here
        with pytest.raises(Died):
            await desk.submitter.submit(WANTED, SOMEBODY, "k")
        other = desk.another(desk.server.process("other gateway"))
        assert await other.submit(WANTED, SOMEBODY, "k") == Accepted("promised", is_new=False)
    else:
        assert await desk.submitter.submit(WANTED, SOMEBODY, "k") == Accepted("promised", is_new=False)
    assert desk.queued() == 1
    assert desk.stored() == ["promised"]


class Died(Exception):
    """The process has ended."""


async def _die(job: Job) -> int:
    raise Died


@pytest.mark.parametrize(
    ("operation", "lost"),
    [
        ("promises.claim", Lost.BEFORE),
        ("promises.claim", Lost.AFTER),
        ("run_store.create", Lost.BEFORE),
        ("run_store.create", Lost.AFTER),
        ("queue.publish", Lost.BEFORE),
        ("queue.publish", Lost.AFTER),
    ],
)
@pytest.mark.parametrize("release", [None, Lost.BEFORE, Lost.AFTER, Slow(4.0)])
@in_virtual_time
async def test_after_a_hiccup_the_same_request_is_taken(operation: Any, lost: Lost, release: Any) -> None:
    """Whether the key could be released or not: the retry is one run, and so are all later ones."""
    desk = Desk()
    desk.faults.next(operation, lost)
    desk.faults.next("promises.release", release)
    with pytest.raises(NatsUnavailable):
        await desk.submitter.submit(WANTED, None, "k")
    assert desk.stored() == []
    desk.faults.calm()
    ids = {(await desk.submitter.submit(WANTED, None, "k")).run_id for _ in range(3)}
    assert ids == set(desk.stored())
    assert len(ids) == 1
    assert desk.queued() >= 1


@in_virtual_time
async def test_a_released_key_may_come_with_another_request() -> None:
    """The first one was not kept."""
    desk = Desk()
    desk.faults.next("run_store.create", Lost.BEFORE)
    with pytest.raises(NatsUnavailable):
        await desk.submitter.submit(WANTED, None, "k")
    assert (await desk.submitter.submit(evolve(WANTED, flow_name="g"), None, "k")).is_new


# -- idempotency keys of many -----------------------------------------------------------------------------------------

MANY = [evolve(WANTED, params={"n": n}) for n in range(4)]


def ids(results: list[Accepted | PyocoError]) -> list[str | None]:
    return [each.run_id if isinstance(each, Accepted) else None for each in results]


@in_virtual_time
async def test_a_key_gives_one_batch() -> None:
    """Of this process or another: the same runs in the same order, and one job each."""
    desk = Desk()
    other = desk.another(desk.server.process("other gateway"))
    first = await desk.submitter.submit_all(MANY, SOMEBODY, "k")
    assert sorted(desk.stored()) == sorted(filter(None, ids(first)))
    for submitter in (desk.submitter, other):
        again = await submitter.submit_all(MANY, SOMEBODY, "k")
        assert ids(again) == ids(first)
        assert not any(each.is_new for each in again if isinstance(each, Accepted))
    assert (len(desk.stored()), desk.queued()) == (4, 4)


@in_virtual_time
async def test_two_requests_with_one_key_at_the_same_time_are_one_batch() -> None:
    """Whoever stores a run, both are told of it."""
    desk = Desk()
    other = desk.another(desk.server.process("other gateway"))
    found: list[list[str | None]] = []

    async def submit(submitter: Submitter) -> None:
        found.append(ids(await submitter.submit_all(MANY, None, "k")))

    desk.faults.rate("run_store.create", Slow(0.5), 0.5)
    async with anyio.create_task_group() as group:
        for submitter in (desk.submitter, other, desk.submitter):
            group.start_soon(submit, submitter)
    assert len(found) == 3
    assert found[0] == found[1] == found[2]
    assert (sorted(desk.stored()), desk.queued()) == (sorted(filter(None, found[0])), 4)


@pytest.mark.parametrize("other", [MANY[:3], [*MANY, WANTED], MANY[::-1], [WANTED]])
@in_virtual_time
async def test_a_key_with_another_batch_is_refused(other: list[Submission]) -> None:
    """Also in another order; and a single run is no batch of one."""
    desk = Desk()
    await desk.submitter.submit_all(MANY, None, "k")
    with pytest.raises(KeyReused, match="use a new key"):
        await desk.submitter.submit_all(other, None, "k")
    with pytest.raises(KeyReused):
        await desk.submitter.submit(MANY[0], None, "k")
    await desk.submitter.submit(WANTED, None, "k-2")
    with pytest.raises(KeyReused):
        await desk.submitter.submit_all([WANTED], None, "k-2")


@in_virtual_time
async def test_what_a_batch_left_unpublished_is_published_by_the_retry() -> None:
    """The process died with all snapshots stored and no job; once the copies are no longer known, nothing is sent."""
    desk = Desk()
    desk.process.work_queue.publish_all = _die_with_all  # type: ignore[method-assign]  # the process ends here
    with pytest.raises(Died):
        await desk.submitter.submit_all(MANY, None, "k")
    assert (len(desk.stored()), desk.queued()) == (4, 0)
    other = desk.another(desk.server.process("other gateway"))
    results = await other.submit_all(MANY, None, "k")
    assert sorted(desk.stored()) == sorted(filter(None, ids(results)))
    assert desk.queued() == 4
    desk.server.work.messages.clear()
    await anyio.sleep(COPY_SEC)
    assert ids(await other.submit_all(MANY, None, "k")) == ids(results)
    assert desk.queued() == 0


async def _die_with_all(jobs: Any) -> list[int | PyocoError]:
    raise Died


@pytest.mark.parametrize("operation", ["run_store.create", "queue.publish"])
@pytest.mark.parametrize("lost", list(Lost))
@in_virtual_time
async def test_the_retry_of_a_batch_takes_in_what_failed_before(operation: Any, lost: Lost) -> None:
    """What was accepted stays what it was; all have their job at the end."""
    desk = Desk()
    desk.faults.next(operation, None, lost, None, lost)
    first = await desk.submitter.submit_all(MANY, None, "k")
    assert [each is None for each in ids(first)] == [False, True, False, True]
    again = ids(await desk.submitter.submit_all(MANY, None, "k"))
    assert again[::2] == ids(first)[::2]
    assert sorted(desk.stored()) == sorted(filter(None, again))
    assert (len(desk.stored()), desk.queued()) == (4, 4)


@in_virtual_time
async def test_the_key_of_a_batch_of_which_nothing_was_taken_is_free_again() -> None:
    """It may come with another batch."""
    desk = Desk()
    desk.faults.rate("run_store.create", Lost.BEFORE, 1.0)
    assert ids(await desk.submitter.submit_all(MANY, None, "k")) == [None] * 4
    desk.faults.calm()
    assert None not in ids(await desk.submitter.submit_all(MANY[:2], None, "k"))


def test_the_ids_of_a_batch_are_different_and_of_the_usual_form() -> None:
    """As those of single runs: random UUIDs by their look."""
    found = ids_of_batch("seed", 1000)
    assert len(set(found)) == 1000
    assert {uuid.UUID(each).version for each in found} == {4}
    assert ids_of_batch("seed", 10) == found[:10]
    assert not set(ids_of_batch("other", 1000)) & set(found)
