"""The actor of one run: claim it, execute it, record it, settle it.

claiming --not ours to run--> concluding
claiming --claimed--> executing --ended--> concluding --stored--> settling
anywhere --a newer attempt--> over, silently; anywhere --cancelled or crashed--> given back
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import anyio
from attrs import evolve, frozen

from pyoco_runtime.core import Alarm, Context
from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, RunnerUnavailable, Unreadable
from pyoco_runtime.in_flight import InFlight, LastRun
from pyoco_runtime.letterbox import Letterbox
from pyoco_runtime.model.dead_letter import Reason, letter_about
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import Ending, FlowEnded, Progress
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.settlement import GIVE_BACK, HICCUP, Settlement, Term
from pyoco_runtime.model.submission import pending_as_in
from pyoco_runtime.model.transition import advanced, beaten
from pyoco_runtime.model.verdict import Conclude, Execute, Leave, Lost, on_delivery, on_ending
from pyoco_runtime.ports import Clock, Delivery, Execution, FlowRunner, RunStore, StoredRun
from pyoco_runtime.record import Record

_log = logging.getLogger(__name__)

WRITE_SEC = 0.25  # at most four snapshots a second and run; the last state is always written
RETRY_SEC = 0.5  # after a write that failed
SETTLE_TRIES = 3  # an ack that stays lost leads to a redelivery, which finds the run terminal
GIVE_BACK_SEC = 2.0
_ONLY_TRACE = frozenset({Reason.INVALID_JOB, Reason.ORPHANED_JOB})


@frozen
class Workshop:
    """What every run of a worker uses."""

    worker_id: str
    store: RunStore
    runner: FlowRunner
    letters: Letterbox
    in_flight: InFlight
    vacate: Callable[[], None]
    clock: Clock
    cancel_grace_sec: float = 30.0
    letter_on_error: bool = True


class Run:
    """One delivery from its arrival to its settlement; a Seat of InFlight."""

    def __init__(self, delivery: Delivery, workshop: Workshop) -> None:
        self.delivery = delivery
        self.run_id = delivery.job.run_id or "-"
        self.since = workshop.clock()
        self._workshop = workshop
        self._alarm = Alarm()
        self._progress: RunSnapshot | None = None
        self._ending: Ending | None = None
        self._dirty = False
        self._look = False
        self._write_at = -math.inf
        self._kill_at = math.inf
        self._is_cancelled = False
        self._is_settled = False

    async def run(self, context: Context) -> None:
        """Bring the run to its end; asked to stop, it goes on; cancelled, it gives the job back."""
        self._workshop.in_flight.add(self)
        try:
            context.ready()
            settlement = await self._outcome(context)
            self._workshop.in_flight.remove(self)  # a sign of life after a NAK would keep the job back
            await self._settle(settlement)
        finally:
            self._workshop.in_flight.remove(self)
            if not self._is_settled:
                await self._give_back()
            self._workshop.vacate()

    # -- what others ask for, at once ----------------------------------------------------------------------------------

    def look(self) -> None:
        self._look = True
        self._alarm.ring_within(0)

    def beat(self) -> None:
        self._write_soon()  # every write is a sign of life

    def _report(self, progress: Progress) -> None:
        if isinstance(progress, FlowEnded):
            self._ending = progress.ending
            self._alarm.ring_within(0)
            return
        assert self._progress is not None
        self._progress = advanced(self._progress, progress)
        self._write_soon()

    def _write_soon(self) -> None:
        if not self._dirty:  # else it is awaited already
            self._dirty = True
            self._alarm.ring_within(max(0.0, self._write_at - anyio.current_time()))

    # -- the way of a run ----------------------------------------------------------------------------------------------

    async def _outcome(self, context: Context) -> Settlement | None:
        try:
            verdict, stored = await self._claim()
        except NatsUnavailable as error:
            _log.warning("cannot claim the run: %s; it is given back", error, extra=self._about(3))
            return HICCUP
        except Unreadable as error:
            verdict, stored = Conclude(Term(Reason.ORPHANED_JOB), None, Reason.ORPHANED_JOB, str(error)), None
        if isinstance(verdict, Leave):
            _log.info("left alone: %s", verdict.why, extra=self._about())
            return None
        if isinstance(verdict, Conclude):
            await self._conclude(verdict)
            return verdict.settlement
        assert stored is not None
        assert stored.snapshot.attempt is not None
        return await self._execute(context, Record(self._workshop.store, stored, stored.snapshot.attempt))

    async def _claim(self) -> tuple[Execute | Conclude | Leave, StoredRun | None]:
        unseen = _unseen(self.delivery)
        while True:
            try:
                return await self._claim_once(unseen)
            except RevisionConflict:
                unseen = None  # somebody wrote in between: look
            except NatsUnavailable:
                if not self.delivery.is_last:
                    raise
                await anyio.sleep(RETRY_SEC)  # to give it back would be limbo: the server delivers it no more

    async def _claim_once(self, found: StoredRun | None) -> tuple[Execute | Conclude | Leave, StoredRun | None]:
        store, delivery = self._workshop.store, self.delivery
        if found is None and delivery.job.run_id:
            found = await store.get(delivery.job.run_id)
        verdict = on_delivery(
            delivery.job,
            found.snapshot if found else None,
            delivery.attempt,
            is_last=delivery.is_last,
            worker_id=self._workshop.worker_id,
            now=self._workshop.clock(),
        )
        snapshot = None if isinstance(verdict, Leave) else verdict.snapshot
        if found is None or snapshot is None:
            return verdict, None
        return verdict, StoredRun(snapshot, await store.update(snapshot, found.revision))

    async def _execute(self, context: Context, record: Record) -> Settlement | None:
        assert isinstance(self.delivery.job, Job)
        self._progress = record.snapshot
        self._write_at = anyio.current_time() + WRITE_SEC
        execution = None
        try:
            with context.until_stopping():
                execution = await self._workshop.runner.begin(self.delivery.job, record.attempt, self._report)
        except RunnerUnavailable as error:
            _log.error("cannot execute flows: %s; the run is given back", error, extra=self._about(35))
            return HICCUP
        if execution is None:
            return GIVE_BACK  # the worker stops, and the flow has not begun
        try:
            return await self._follow(execution, record)
        finally:
            if self._ending is None:
                execution.kill()

    async def _follow(self, execution: Execution, record: Record) -> Settlement | None:
        while self._ending is None:
            lost = await self._attend(execution, record)
            if lost is not None:
                return self._lose(lost)
            if self._ending is None:
                with self._alarm.until(min(self._kill_at, self._write_at if self._dirty else math.inf)):
                    await anyio.sleep_forever()
        return await self._finish(record, self._ending)

    async def _attend(self, execution: Execution, record: Record) -> Lost | None:
        """Do what is due now: read, write, pass a cancel on, end it by force."""
        lost = None
        try:
            if self._look:
                self._look = False
                lost = await record.read()
            if lost is None and self._dirty and anyio.current_time() >= self._write_at:
                lost = await self._write(record)
        except NatsUnavailable as error:
            _log.debug("cannot write the snapshot: %s; trying again", error, extra=self._about(3))
            self._dirty = True
            self._write_at = anyio.current_time() + RETRY_SEC
        if lost is None and record.snapshot.is_cancel_requested:
            self._pass_cancel_on(execution)
        return lost

    async def _write(self, record: Record) -> Lost | None:
        self._dirty = False
        self._write_at = anyio.current_time() + WRITE_SEC
        now = self._workshop.clock()
        return await record.write(lambda latest: beaten(self._with_progress(latest), now))

    def _pass_cancel_on(self, execution: Execution) -> None:
        now = anyio.current_time()
        if not self._is_cancelled:
            self._is_cancelled = True
            self._kill_at = now + self._workshop.cancel_grace_sec
            _log.info("cancelling", extra=self._about())
            execution.cancel()
        elif now >= self._kill_at:
            self._kill_at = math.inf
            _log.warning("the cancel did not converge in time; ending it by force", extra=self._about(21))
            execution.kill()

    async def _finish(self, record: Record, ending: Ending) -> Settlement | None:
        now = self._workshop.clock()
        said = False
        while True:
            conclusions: list[Conclude] = []

            def end(latest: RunSnapshot, made: list[Conclude] = conclusions) -> RunSnapshot:
                made.append(on_ending(self._with_progress(latest), ending, now))
                assert made[-1].snapshot is not None
                return made[-1].snapshot

            try:
                lost = await record.write(end)
                break
            except NatsUnavailable as error:
                if not said:
                    _log.warning("cannot record the end: %s; trying again", error, extra=self._about(8))
                said = True
                await anyio.sleep(RETRY_SEC)
        if lost is not None:
            return self._lose(lost)
        await self._conclude(conclusions[-1])
        return conclusions[-1].settlement

    def _with_progress(self, latest: RunSnapshot) -> RunSnapshot:
        progress = self._progress
        assert progress is not None
        return evolve(
            latest,
            tasks=progress.tasks,
            task_records=progress.task_records,
            task_records_truncated=progress.task_records_truncated,
            graph=progress.graph,
        )

    def _lose(self, lost: Lost) -> Settlement | None:
        _log.warning("the run is not ours any more: %s", lost.why, extra=self._about())
        return lost.settlement

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _conclude(self, conclusion: Conclude) -> None:
        if conclusion.snapshot is not None:
            self._tell_the_end(conclusion.snapshot)
        reason = conclusion.reason
        if reason is None:
            return
        _log.warning("%s: %s", reason, conclusion.error, extra=self._about(_NUMBERS.get(reason), reason))
        if reason is Reason.EXECUTION_ERROR and not self._workshop.letter_on_error:
            return
        letter = letter_about(
            self.delivery.job,
            reason,
            conclusion.error,
            now=self._workshop.clock(),
            tag=self.delivery.tag,
            subject=self.delivery.subject,
            attempt=self.delivery.attempt,
            worker_id=self._workshop.worker_id,
        )
        posted = await self._workshop.letters.post(letter)
        if reason in _ONLY_TRACE:
            await posted.sent.wait()  # nothing else remains of it: stored before the queue forgets the job

    def _tell_the_end(self, snapshot: RunSnapshot) -> None:
        _log.debug("ended: %s", snapshot.status, extra=self._about())
        self._workshop.in_flight.last = LastRun(self.run_id, snapshot.status, self._workshop.clock())

    async def _settle(self, settlement: Settlement | None) -> None:
        if settlement is None:
            self._is_settled = True
            return
        for _ in range(SETTLE_TRIES):
            try:
                await self.delivery.settle(settlement)
                break
            except NatsUnavailable as error:
                _log.info("cannot settle the job: %s", error, extra=self._about(3))
                await anyio.sleep(RETRY_SEC)
        self._is_settled = True

    async def _give_back(self) -> None:
        with anyio.move_on_after(GIVE_BACK_SEC, shield=True):
            try:
                await self.delivery.settle(GIVE_BACK)
                _log.info("given back: this worker stops or the run's actor failed", extra=self._about())
            except NatsUnavailable:
                _log.info("cannot give the job back; it comes back after its ack wait", extra=self._about(3))

    def _about(self, number: int | None = None, reason: str | None = None) -> dict[str, object]:
        job = self.delivery.job
        about: dict[str, object] = {"run_id": self.run_id, "flow_name": job.flow_name, "tag": self.delivery.tag}
        about["worker_id"] = self._workshop.worker_id
        if number is not None:
            about |= {"err_id": f"ERR-PYOCO-{number:04d}", "msg_id": f"MSG-PYOCO-{number:04d}"}
        if reason is not None:
            about["reason"] = reason
        return about


_NUMBERS = {Reason.INVALID_JOB: 12, Reason.FLOW_NOT_FOUND: 6, Reason.EXECUTION_ERROR: 7}


def _unseen(delivery: Delivery) -> StoredRun | None:
    """What is stored if nobody has touched it since the job was sent; the compare-and-set finds out. Saves a look."""
    job = delivery.job
    if not isinstance(job, Job) or job.snapshot_revision is None or delivery.attempt.delivery > 1:
        return None
    return StoredRun(pending_as_in(job), job.snapshot_revision)
