"""The actor of one run on memory ports, in virtual time: the contract's table of outcomes, row by row."""

from __future__ import annotations

import json
import logging
import math

import anyio
import pytest
from attrs import evolve

from pyoco_runtime.actors.heartbeat import Heartbeat, Identity, WheelNews
from pyoco_runtime.actors.run import Run
from pyoco_runtime.core import Actor, Context
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.run import RunStatus, TaskStatus
from pyoco_runtime.model.settlement import GIVE_BACK, HICCUP, Ack, Nak, Term
from pyoco_runtime.model.submission import Submission
from pyoco_runtime.model.transition import claimed, failed
from pyoco_runtime.model.worker import WheelSync
from pyoco_runtime.submitter import Submitter
from pyoco_runtime.testing.fake_runner import EndTask, Fail, IgnoreCancel, Print, Script, Sleep, StartTask
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_consumer import ConsumerSettings
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from pyoco_runtime.testing.memory_link import MemoryLink
from pyoco_runtime.testing.stress import stress_start_cancel
from tests.unit.actors.support import WORKER, Shop, in_virtual_time, job, settle_down

SCRIPTS: dict[str, Script] = {
    "fails": (StartTask("t"), Sleep(1.0), Fail("ValueError: no")),
    "hangs": (StartTask("t"), Sleep(math.inf)),
    "deaf": (StartTask("t"), IgnoreCancel(), Sleep(math.inf)),
    "chatty": (StartTask("t"), *[step for n in range(200) for step in (Print("t", f"{n}\n"), Sleep(0.01))]),
}


def said(caplog: pytest.LogCaptureFixture, number: int) -> list[str]:
    """The log messages with this error number."""
    wanted = f"ERR-PYOCO-{number:04d}"
    return [record.getMessage() for record in caplog.records if getattr(record, "err_id", None) == wanted]


# -- the table --------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_done_the_terminal_snapshot_is_written_before_the_ack() -> None:
    """COMPLETED with its tasks, by this worker and attempt, and then ACK; no dead letter."""
    shop = Shop()
    async with shop.open():
        await shop.bring_to_end()
    run = shop.snapshot()
    assert (run.status, run.worker_id, run.attempt) == (RunStatus.COMPLETED, WORKER, Attempt(1, 1))
    assert run.tasks == {"t": TaskStatus.SUCCEEDED}
    assert run.task_records["t"].output == 7
    assert run.start_time is not None
    assert run.end_time == pytest.approx(run.start_time + 1.0)
    assert shop.settlements() == [Ack()]
    assert shop.reasons() == []
    assert shop.in_flight.last is not None
    assert (shop.in_flight.last.run_id, shop.in_flight.last.status) == ("r-1", RunStatus.COMPLETED)


@in_virtual_time
async def test_an_invalid_job_with_a_run_id_fails_its_run() -> None:
    """FAILED, TERM, and a dead letter that repeats the payload."""
    shop = Shop()
    async with shop.open():
        shop.accept()
        shop.server.send("default", json.dumps({"run_id": "r-1", "flow_name": 5}).encode())
        await shop.start(await shop.take()).end()
    assert shop.snapshot().status is RunStatus.FAILED
    assert (shop.snapshot().error or "").startswith("invalid_job: ")
    assert isinstance(shop.settlements()[0], Term)
    (letter,) = shop.server.log.letters()
    assert (letter.reason, letter.run_id, letter.num_delivered) == ("invalid_job", "r-1", 1)
    assert '"flow_name": 5' in (letter.payload or "")


@in_virtual_time
async def test_an_invalid_job_without_a_run_id_leaves_only_a_letter_stored_before_the_term(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While the letter cannot be stored the job stays on the queue."""
    shop = Shop()
    async with shop.open():
        shop.server.send("default", b"\xff not json")
        shop.server.faults.next("dead_letters.publish", Lost.BEFORE, Lost.BEFORE)
        started = shop.start(await shop.take())
        await anyio.sleep(1.5)
        assert shop.settlements() == []
        await started.end()
    assert isinstance(shop.settlements()[0], Term)
    assert shop.reasons() == ["invalid_job"]
    assert said(caplog, 12)


@in_virtual_time
async def test_an_unknown_flow_fails_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """FAILED with flow_not_found, ACK, dead letter."""
    shop = Shop()
    async with shop.open():
        await shop.bring_to_end(flow_name="nowhere")
    assert shop.snapshot().status is RunStatus.FAILED
    assert (shop.snapshot().error or "").startswith("flow_not_found: ")
    assert shop.settlements() == [Ack()]
    assert shop.reasons() == ["flow_not_found"]
    assert said(caplog, 6)


@pytest.mark.parametrize("letter", [True, False])
@in_virtual_time
async def test_a_flow_that_raised(letter: bool, caplog: pytest.LogCaptureFixture) -> None:
    """FAILED with its error, ACK, and a dead letter unless that is switched off; open tasks are over."""
    shop = Shop(SCRIPTS, letter_on_error=letter)
    async with shop.open():
        await shop.bring_to_end(flow_name="fails")
    run = shop.snapshot()
    assert (run.status, run.error) == (RunStatus.FAILED, "ValueError: no")
    assert run.tasks == {"t": TaskStatus.CANCELLED}
    assert shop.settlements() == [Ack()]
    assert shop.reasons() == (["execution_error"] if letter else [])
    assert said(caplog, 7)


@pytest.mark.parametrize("operation", ["run_store.get", "run_store.update"])
@pytest.mark.parametrize("lost", list(Lost))
@in_virtual_time
async def test_a_hiccup_while_claiming_gives_the_job_back_for_2_s(operation: str, lost: Lost) -> None:
    """NAK with 2 s; nothing is executed, and the next delivery brings it to its end."""
    shop = Shop()
    async with shop.open():
        await shop.submit()
        first = await shop.take()
        shop.server.faults.next(operation, lost)  # type: ignore[arg-type]
        await shop.start(first).end()
        assert shop.settlements() == [HICCUP]
        assert shop.runner.executions == []
        given_back_at = anyio.current_time()
        again = await shop.take()
        assert anyio.current_time() == pytest.approx(given_back_at + 2.0)
        await shop.start(again).end()
    assert shop.snapshot().status is RunStatus.COMPLETED
    assert shop.settlements() == [HICCUP, Ack()]
    assert len(shop.runner.executions) == 1


@in_virtual_time
async def test_a_hiccup_while_recording_the_end_is_retried_and_nothing_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As often as it takes, logged once as ERR-PYOCO-0008; the end time is that of the flow."""
    shop = Shop()
    async with shop.open():
        started = await shop.begin()
        await anyio.sleep(0.9)
        shop.process.disconnect()
        await anyio.sleep(20)
        shop.process.reconnect()
        await started.end()
    assert shop.snapshot().status is RunStatus.COMPLETED
    assert shop.snapshot().end_time == pytest.approx(shop.runner.executions[0].ended_at)
    assert len(shop.runner.executions) == 1
    assert shop.settlements() == [Ack()]
    assert len(said(caplog, 8)) == 1


@in_virtual_time
async def test_a_run_cancelled_while_it_waited_never_starts() -> None:
    """CANCELLED and ACK without an execution."""
    shop = Shop()
    async with shop.open():
        await shop.submit()
        delivery = await shop.take()
        shop.cancel()
        await shop.start(delivery).end()
    assert shop.snapshot().status is RunStatus.CANCELLED
    assert shop.snapshot().cancel_requested_by == "test"
    assert shop.runner.executions == []
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_a_run_cancelled_while_it_runs_is_asked_to_stop() -> None:
    """The word comes through `look`; CANCELLED, ACK, its open task CANCELLED, no dead letter."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        shop.cancel()
        started.run.look()
        await started.end(within_sec=0.1)
    run = shop.snapshot()
    assert (run.status, run.cancel_requested_by) == (RunStatus.CANCELLED, "test")
    assert run.tasks == {"t": TaskStatus.CANCELLED}
    assert shop.settlements() == [Ack()]
    assert shop.reasons() == []


@in_virtual_time
async def test_a_cancel_is_found_without_a_hint_at_the_next_write() -> None:
    """A heartbeat meets the other's revision, and passes the cancel on instead of undoing it."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        shop.cancel()
        started.run.beat()
        await started.end(within_sec=1)
    assert shop.snapshot().status is RunStatus.CANCELLED
    assert [fact.snapshot.status for fact in shop.writes()[-2:] if fact.snapshot] == [
        RunStatus.CANCELLING,
        RunStatus.CANCELLED,
    ]


@in_virtual_time
async def test_a_run_that_will_not_listen_is_ended_by_force_after_the_grace(caplog: pytest.LogCaptureFixture) -> None:
    """ERR-PYOCO-0021 once, then killed, then CANCELLED; other looks meanwhile do not put it off."""
    shop = Shop(SCRIPTS, cancel_grace_sec=30.0)
    async with shop.open():
        started = await shop.begin(flow_name="deaf")
        await anyio.sleep(5)
        shop.cancel()
        started.run.look()
        for _ in range(29):
            await anyio.sleep(1)
            started.run.look()
            started.run.beat()
        assert shop.snapshot().status is RunStatus.CANCELLING
        assert not said(caplog, 21)
        await started.end(within_sec=1.5)
    assert len(said(caplog, 21)) == 1
    assert shop.snapshot().status is RunStatus.CANCELLED
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_a_run_that_is_over_is_not_run_again() -> None:
    """ACK, and the snapshot is not touched."""
    shop = Shop()
    async with shop.open():
        shop.accept(status=RunStatus.FAILED, error="before")
        await shop.process.work_queue.publish(job())
        await shop.start(await shop.take()).end()
    assert shop.writes() == []
    assert shop.runner.executions == []
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_the_last_delivery_is_a_dead_letter_and_not_limbo() -> None:
    """FAILED with max_deliver_exceeded, ACK, letter; it is not executed once more."""
    shop = Shop(consumer=ConsumerSettings(max_deliver=2))
    async with shop.open():
        await shop.submit()
        await (await shop.take()).settle(Nak())
        await shop.start(await shop.take()).end()
    assert shop.snapshot().status is RunStatus.FAILED
    assert (shop.snapshot().error or "").startswith("max_deliver_exceeded")
    assert shop.runner.executions == []
    assert shop.reasons() == ["max_deliver_exceeded"]
    assert shop.settlements() == [Nak(), Ack()]


@pytest.mark.parametrize("lost", list(Lost))
@in_virtual_time
async def test_a_hiccup_on_the_last_delivery_is_retried(lost: Lost) -> None:
    """To give it back would be limbo: nobody would ever see it again."""
    shop = Shop(consumer=ConsumerSettings(max_deliver=2))
    async with shop.open():
        await shop.submit()
        await (await shop.take()).settle(Nak())
        last = await shop.take()
        shop.server.faults.next("run_store.update", lost)
        await shop.start(last).end()
    assert shop.snapshot().status is RunStatus.FAILED
    assert shop.settlements() == [Nak(), Ack()]
    assert shop.server.work.messages == {}


@in_virtual_time
async def test_a_job_without_a_snapshot_is_not_run() -> None:
    """Its submitter was told that it was refused: TERM, and a letter that is stored first."""
    shop = Shop()
    async with shop.open():
        await shop.process.work_queue.publish(job())
        await shop.start(await shop.take()).end()
    assert shop.server.snapshot("r-1") is None
    assert shop.runner.executions == []
    assert shop.settlements() == [Term("orphaned_job")]
    assert shop.reasons() == ["orphaned_job"]


@in_virtual_time
async def test_a_snapshot_that_cannot_be_read_is_a_dead_letter() -> None:
    """TERM and a letter with what is wrong; the value stays as it is."""
    shop = Shop()
    async with shop.open():
        shop.server.write_run("r-1", b"[1, 2]")
        await shop.process.work_queue.publish(job())
        await shop.start(await shop.take()).end()
    assert isinstance(shop.settlements()[0], Term)
    assert shop.reasons() == ["orphaned_job"]


# -- fencing ----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_delivery_that_is_older_than_the_attempt_in_the_snapshot_is_left_alone() -> None:
    """Nothing is written, executed or settled."""
    shop = Shop()
    async with shop.open():
        await shop.submit()
        delivery = await shop.take()
        shop.write(claimed(shop.snapshot(), "w-2", Attempt(1, 2), virtual_clock()))
        await shop.start(delivery).end()
    assert shop.writes() == []
    assert shop.runner.executions == []
    assert shop.settlements() == []


@pytest.mark.parametrize("notices", ["look", "beat", "end"])
@in_virtual_time
async def test_a_newer_attempt_stops_the_older_one(notices: str) -> None:
    """The older one ends its flow by force, and neither writes nor settles any more."""
    shop = Shop({"long": (StartTask("t"), Sleep(10.0), EndTask("t"))})
    async with shop.open():
        started = await shop.begin(flow_name="long")
        await anyio.sleep(5)
        shop.write(claimed(shop.snapshot(), "w-2", Attempt(1, 2), virtual_clock()))
        written = len(shop.writes())
        if notices != "end":
            getattr(started.run, notices)()
        await started.end(within_sec=6.0 if notices == "end" else 1.0)
        await anyio.sleep(1)
        assert shop.runner.running == ()
    assert len(shop.writes()) == written
    assert shop.settlements() == []


@in_virtual_time
async def test_a_program_without_attempts_takes_a_run_over() -> None:
    """The peer's worker knows no attempts: whoever finds its snapshot lets go."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        shop.write(evolve(shop.snapshot(), attempt=None, worker_id="peer"))
        started.run.look()
        await started.end(within_sec=1)
    assert shop.snapshot().worker_id == "peer"
    assert shop.settlements() == []


@in_virtual_time
async def test_a_run_that_somebody_else_has_ended_is_acked() -> None:
    """A reconciler failed it: the flow is ended by force, the snapshot stays, the job goes."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        shop.write(failed(shop.snapshot(), "lost", virtual_clock()))
        started.run.look()
        await started.end(within_sec=1)
        await anyio.sleep(1)
        assert shop.runner.running == ()
    assert shop.snapshot().error == "lost"
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_a_run_that_was_removed_while_it_ran_is_stopped() -> None:
    """It is not written again, and its job is taken off the queue."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        stored = shop.server.snapshot("r-1")
        assert stored is not None
        await shop.process.run_store.remove("r-1", stored.revision)
        started.run.look()
        await started.end(within_sec=1)
    assert shop.server.snapshot("r-1") is None
    assert shop.settlements() == [Term("orphaned_job")]


# -- answers that are lost --------------------------------------------------------------------------------------------


@in_virtual_time
async def test_the_lost_answer_to_the_terminal_write() -> None:
    """It finds its own end in the store, and acks; the dead letter of a failed run is there all the same."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="fails")
        await anyio.sleep(0.9)
        shop.server.faults.next("run_store.update", Lost.AFTER)
        await started.end()
    assert shop.snapshot().status is RunStatus.FAILED
    assert shop.settlements() == [Ack()]
    assert shop.reasons() == ["execution_error"]
    assert [fact.snapshot.status for fact in shop.writes() if fact.snapshot][-2:] == [
        RunStatus.RUNNING,
        RunStatus.FAILED,
    ]


@in_virtual_time
async def test_the_lost_answer_to_the_ack() -> None:
    """It acks again; that the message is gone by then harms nobody."""
    shop = Shop()
    async with shop.open():
        started = await shop.begin()
        shop.server.faults.next("settle", Lost.AFTER)
        await started.end()
    assert shop.settlements() == [Ack(), Ack()]
    assert shop.server.work.messages == {}


@in_virtual_time
async def test_an_ack_that_stays_lost_leads_to_a_redelivery_that_only_acks() -> None:
    """The run was over: the second delivery finds that, and does not execute it."""
    shop = Shop()
    async with shop.open():
        started = await shop.begin()
        shop.server.faults.next("settle", Lost.BEFORE, Lost.BEFORE, Lost.BEFORE)
        await started.end()
        assert shop.settlements() == []
        await shop.start(await shop.take()).end()
    assert shop.settlements() == [Ack()]
    assert len(shop.runner.executions) == 1


@in_virtual_time
async def test_revision_conflicts_are_settled_by_reading() -> None:
    """Somebody writes the same snapshot before each of our writes: it takes longer and ends well."""
    shop = Shop()
    async with shop.open():
        for _ in range(2):
            shop.server.faults.conflict_next("r-1")
        await shop.bring_to_end()
    assert shop.snapshot().status is RunStatus.COMPLETED


# -- what is written, and how often -----------------------------------------------------------------------------------


@in_virtual_time
async def test_snapshots_are_written_at_most_4_times_a_second_and_the_last_state_always() -> None:
    """200 prints in 2 s, with heartbeats between them."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="chatty")
        for _ in range(20):
            await anyio.sleep(0.099)
            started.run.beat()
        await started.end()
    times = [fact.at for fact in shop.writes()]
    for n, at in enumerate(times[:-1]):  # the terminal write does not wait
        assert len([other for other in times[n:-1] if other < at + 1.0 - 1e-6]) <= 4
    assert 6 <= len(times) <= 11
    assert (shop.snapshot().task_records["t"].stdout or "").endswith("199\n")


@in_virtual_time
async def test_a_change_is_written_soon_although_nothing_follows() -> None:
    """A quarter of a second after the claim everybody can see the running task."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(0.3)
        assert shop.snapshot().tasks == {"t": TaskStatus.RUNNING}
        await anyio.sleep(10)
        assert len(shop.writes()) == 2
        shop.cancel()
        started.run.look()
        await started.end()


@in_virtual_time
async def test_a_write_that_fails_is_tried_again_without_a_further_event() -> None:
    """The state that could not be stored is stored when NATS is back."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(0.1)
        shop.server.faults.next("run_store.update", Lost.BEFORE, Lost.AFTER)
        await anyio.sleep(3)
        assert shop.snapshot().tasks == {"t": TaskStatus.RUNNING}
        shop.cancel()
        started.run.look()
        await started.end()


@in_virtual_time
async def test_a_heartbeat_never_lands_after_the_terminal_write_and_never_undoes_a_cancel() -> None:
    """The real heartbeat beats ten times a second around the cancel and the end of a run."""
    shop = Shop({"slow": (StartTask("t"), IgnoreCancel(), Sleep(3.0), EndTask("t"))})

    def heartbeat() -> Actor:
        link = MemoryLink()
        who = Identity(WORKER, "i-1", ("default",), 4)
        news = WheelNews(WheelSync())
        return Heartbeat(
            who, shop.in_flight, shop.process.registry, news, link, virtual_clock, worker_sec=5.0, run_sec=0.1
        )

    async with shop.open(heartbeat=heartbeat):
        started = await shop.begin(flow_name="slow")
        await anyio.sleep(1.234)
        shop.cancel()
        await started.end()
        await anyio.sleep(2)
    stati = [run.status for run in shop.server.log.snapshots("r-1") if run]
    first = stati.index(RunStatus.CANCELLING)
    assert RunStatus.RUNNING not in stati[first:]
    assert stati.count(RunStatus.CANCELLED) == 1
    assert stati[-1] is RunStatus.CANCELLED
    assert stati[first:].count(RunStatus.CANCELLING) > 5


@in_virtual_time
async def test_a_heartbeat_changes_nothing_but_times() -> None:
    """heartbeat_at and updated_at move, all the rest stays."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(10)
        before = shop.snapshot()
        started.run.beat()
        await settle_down()
        after = shop.snapshot()
        assert after.heartbeat_at == pytest.approx(virtual_clock())
        assert evolve(after, heartbeat_at=before.heartbeat_at, updated_at=before.updated_at) == before
        shop.cancel()
        started.run.look()
        await started.end()


# -- stopping ---------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_run_that_runs_when_the_worker_stops_is_finished() -> None:
    """Asked to stop, it goes on within its shutdown time."""
    shop = Shop({"long": (StartTask("t"), Sleep(20.0), EndTask("t"))})
    async with shop.open():
        await shop.begin(flow_name="long")
        await anyio.sleep(1)
    assert shop.snapshot().status is RunStatus.COMPLETED
    assert shop.settlements() == [Ack()]


@in_virtual_time
async def test_a_run_that_has_not_begun_when_the_worker_stops_is_given_back() -> None:
    """It waits for a place in the runner: NAK at once, and somebody else has it."""
    shop = Shop(SCRIPTS | {"long": (Sleep(20.0),)}, places=2)
    shop.runner._places = anyio.Semaphore(1, max_value=1)  # as if one of its processes were not up yet
    async with shop.open() as tree:
        await shop.begin("r-1", "long")
        await anyio.sleep(1)
        await shop.begin("r-2", "hangs")
        await anyio.sleep(1)
        tree.stop()
        await settle_down()
        assert shop.settlements(2) == [GIVE_BACK]
    assert [done.run_id for done in shop.runner.executions] == ["r-1"]


@in_virtual_time
async def test_a_run_that_does_not_end_in_time_is_given_back_and_ended_by_force() -> None:
    """Cancelled after its shutdown time: NAK, and no flow goes on without an owner."""
    shop = Shop(SCRIPTS)
    async with shop.open() as tree:
        await shop.begin(flow_name="hangs")
        await anyio.sleep(1)
        tree.request_restart("shop/runs")
        await anyio.sleep(24.5)
        assert shop.settlements() == []
        await anyio.sleep(1)
        assert shop.settlements() == [GIVE_BACK]
        assert shop.runner.running == ()
    assert shop.snapshot().status is RunStatus.RUNNING  # until the next attempt


@in_virtual_time
async def test_a_run_whose_actor_crashes_is_given_back() -> None:
    """Its snapshot became unreadable under it: a crash, NAK, its place is free and its flow ended."""
    shop = Shop(SCRIPTS)
    async with shop.open():
        started = await shop.begin(flow_name="hangs")
        await anyio.sleep(5)
        shop.server.write_run("r-1", b"[]")
        started.run.look()
        await started.end(within_sec=1)
        await anyio.sleep(1)
        assert shop.settlements() == [GIVE_BACK]
        assert shop.runner.running == ()
        assert shop.slots.free == 4
        (crash,) = shop.crashes()
        assert crash.crash is not None
        assert crash.crash.type == "Unreadable"
        shop.events.clear()


@in_virtual_time
async def test_no_runner_gives_the_job_back(caplog: pytest.LogCaptureFixture) -> None:
    """No process can be started: ERR-PYOCO-0035, and NAK with a pause."""
    shop = Shop()
    async with shop.open():
        shop.runner.refuse_begin = 1
        await shop.bring_to_end()
        assert shop.settlements() == [HICCUP]
        await shop.start(await shop.take()).end()
    assert said(caplog, 35)
    assert shop.snapshot().status is RunStatus.COMPLETED


@in_virtual_time
async def test_giving_back_without_nats_does_not_hold_up_the_end() -> None:
    """Two seconds at most; the job comes back after its ack wait."""
    shop = Shop(SCRIPTS)
    async with shop.open() as tree:
        await shop.begin(flow_name="hangs")
        await anyio.sleep(1)
        shop.process.disconnect()
        tree.stop(now=True)
        began = anyio.current_time()
    assert anyio.current_time() - began < 2.5
    assert shop.settlements() == []


@in_virtual_time
async def test_no_secret_of_the_job_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Every log record of a run carries its context and none of its parameters."""
    caplog.set_level(logging.DEBUG)
    shop = Shop(SCRIPTS)
    async with shop.open():
        shop.accept("r-1", "fails", params={"password": "s3cret"})
        await shop.process.work_queue.publish(job("r-1", "fails", params={"password": "s3cret"}))
        await shop.start(await shop.take()).end()
    ours = [record for record in caplog.records if record.name.endswith("actors.run")]
    assert ours
    assert all(record.__dict__["run_id"] == "r-1" and record.__dict__["worker_id"] == WORKER for record in ours)
    assert "s3cret" not in str([record.__dict__ for record in caplog.records])


# -- stress -----------------------------------------------------------------------------------------------------------


class Whole:
    """A run and all that it needs, as one actor: it serves its own runner."""

    def __init__(self, flow_name: str) -> None:
        self._shop = Shop(SCRIPTS)
        self._flow_name = flow_name

    async def run(self, context: Context) -> None:
        shop = self._shop
        await shop.submit(flow_name=self._flow_name)
        delivery = await shop.take()
        assert shop.slots.try_reserve()
        shop.slots.occupy()
        made = Run(delivery, shop.workshop)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(shop.runner.serve)
                await made.run(context)
                tasks.cancel_scope.cancel()
        finally:
            assert len(shop.in_flight) == 0
            assert shop.slots.free == shop.slots.total
            assert len(shop.settlements()) <= 1


@pytest.mark.parametrize("flow_name", ["ok", "hangs", "chatty"])
def test_a_run_survives_start_and_cancel_stress(flow_name: str) -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind, and what it held is given back."""
    stress_start_cancel(lambda: Whole(flow_name))


# -- a job that names its snapshot's revision -------------------------------------------------------------------------


async def _submit_as_our_gateway(shop: Shop) -> None:
    process = shop.server.process("gateway")
    submitter = Submitter(process.run_store, process.work_queue, process.promises, virtual_clock, lambda: "r-1")
    await submitter.submit(Submission(flow_name="ok", tag="default", tags=("default",), params={"x": 1}), None)


@in_virtual_time
async def test_a_run_of_our_gateway_is_claimed_without_a_look() -> None:
    """The read would have failed; the run runs all the same, with all that its snapshot held."""
    shop = Shop()
    async with shop.open():
        await _submit_as_our_gateway(shop)
        shop.server.faults.next("run_store.get", Lost.BEFORE)
        started = shop.start(await shop.take())
        await started.end()
        found = shop.snapshot()
        assert (found.status, found.attempt, dict(found.params)) == (RunStatus.COMPLETED, Attempt(1, 1), {"x": 1})
        shop.server.faults.calm()


@in_virtual_time
async def test_what_was_written_after_the_job_was_sent_is_not_overlooked() -> None:
    """A cancel that comes before the claim: the run is looked at, and not executed."""
    shop = Shop()
    async with shop.open():
        await _submit_as_our_gateway(shop)
        shop.cancel()
        started = shop.start(await shop.take())
        await started.end()
        assert shop.snapshot().status is RunStatus.CANCELLED
        assert shop.snapshot().tasks == {}
