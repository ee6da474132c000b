"""The actor that finds what a crash left half done: runs whose job is gone, and jobs that nobody will get any more."""

from __future__ import annotations

import logging
import math

import anyio
from attrs import define

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable, RevisionConflict, Unreadable
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.open_runs import OpenRun, OpenRuns
from pyoco_runtime.model.reconcile import (
    ByNumber,
    ByTime,
    Discard,
    End,
    Leftover,
    Limits,
    Wait,
    on_leftover,
    on_missing,
)
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.ports import (
    CaughtUp,
    Clock,
    DeadLetters,
    Link,
    QueueInspector,
    RunChange,
    RunChanged,
    RunChanges,
    RunRemoved,
    RunStore,
    StoredRun,
    StuckJob,
)

_log = logging.getLogger(__name__)

RETRY_SEC = 1.0  # when the link says up and the feed fails all the same
LAST_WORD_SEC = 2.0  # for a letter that is still owed when this actor must stop
LEFTOVERS = 200  # in one round: the feed waits meanwhile
TRIES = 3  # rounds; a letter that is refused must not keep all others waiting


@define
class Debt:
    """What is left to do about one run or leftover, in this order; None is done, or was not needed."""

    run_id: str | None
    wanted: RunSnapshot | None
    """The end that was written, if we do not know yet whether it was stored."""
    letter: DeadLetter | None
    seq: int | None
    """The leftover to take off the queue."""
    tries: int = 0


class Reconciler:
    """End the runs that nobody else can end. Any number of them may work on one NATS: compare-and-set decides."""

    def __init__(
        self,
        store: RunStore,
        inspector: QueueInspector,
        letters: DeadLetters,
        link: Link,
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._inspector = inspector
        self._letters = letters
        self._link = link
        self._clock = clock
        self._limits = limits or Limits()
        self._open = OpenRuns(self._limits)
        self._rest_until = -math.inf
        self._stuck_at = math.inf
        self._asked_at = -math.inf
        self._debt: Debt | None = None

    async def run(self, context: Context) -> None:
        """Follow all runs until asked to stop; a feed that is lost is opened anew."""
        context.ready()
        try:
            with context.until_stopping():
                while True:
                    await self._link.wait_up()
                    try:
                        async with self._store.changes() as feed:
                            await self._follow(feed)
                    except NatsUnavailable as error:
                        _log.debug("the feed of runs was lost: %s; opening it again", error)
                        await anyio.sleep(RETRY_SEC)
        finally:
            await self._pay_at_last()

    async def _follow(self, feed: RunChanges) -> None:
        self._open.begin_load()
        while self._note(await feed.next()):
            pass
        while True:
            with anyio.CancelScope(deadline=self._next_time()) as scope:
                while True:
                    self._note(await feed.next())
                    scope.deadline = min(scope.deadline, self._next_time())
            await self._round()

    def _note(self, change: RunChange) -> bool:
        """Take in what the feed says; whether more of the first picture is to come."""
        match change:
            case RunChanged(stored):
                self._open.note(stored.snapshot, stored.revision, anyio.current_time())
            case RunRemoved(run_id):
                self._open.forget(run_id)
            case CaughtUp():
                self._open.end_load()
                self._ask_for_leftovers()
                return False
        return True

    def _next_time(self) -> float:
        if self._debt is not None:
            return self._rest_until
        return max(self._rest_until, min(self._stuck_at, self._open.next_due()))

    async def _round(self) -> None:
        """Look after some of the runs that are due, the oldest first; one that fails does not stop the others."""
        began = anyio.current_time()
        await self._pay_again()
        for _ in range(self._limits.looks):
            run = self._open.take_due(anyio.current_time()) if self._debt is None else None
            if run is None:
                break
            await self._look_after(run)
            if anyio.current_time() - began >= self._limits.round_sec:
                break
        if self._debt is None and anyio.current_time() >= self._stuck_at:
            await self._clean_up()
        now = anyio.current_time()
        # searches in a long queue take their time: at least as long as they took, the feed is read and the server rests
        self._rest_until = now + max(self._limits.round_sec, now - began)

    # -- runs without a job --------------------------------------------------------------------------------------------

    async def _look_after(self, run: OpenRun) -> None:
        try:
            if await self._may_be_queued(run):
                self._ask_for_leftovers()
            else:
                await self._end_lost(run)
        except NatsUnavailable as error:
            _log.debug("cannot look after a run: %s; later", error, extra={"run_id": run.run_id})
            self._open.put_back(run, anyio.current_time())
        else:
            self._open.postpone(run, anyio.current_time())

    async def _may_be_queued(self, run: OpenRun) -> bool:
        for place in run.places:
            match place:
                case ByNumber(seq):
                    if await self._inspector.holds(seq):
                        return True
                case ByTime(tag, times):
                    for time in times:
                        if await self._inspector.find(run.run_id, tag, time) is not None:
                            return True
        if not run.places and not run.looks:
            about = {"run_id": run.run_id}
            _log.info("cannot tell whether the job of a silent run is on the queue: left alone", extra=about)
        return not run.places

    async def _end_lost(self, run: OpenRun) -> None:
        found = await self._read(run.run_id)  # after the look: a worker writes the end before its ack
        if found is None:
            self._open.forget(run.run_id)
            return
        if found.revision != run.revision:
            self._open.note(found.snapshot, found.revision, anyio.current_time())
            return
        end = on_missing(found.snapshot, self._clock())
        if end is not None:
            await self._end(end, found.revision)

    # -- jobs that nobody will get -------------------------------------------------------------------------------------

    def _ask_for_leftovers(self) -> None:
        """As soon as the gap allows."""
        soon = max(anyio.current_time(), self._asked_at + self._limits.stuck_gap_sec)
        self._stuck_at = min(self._stuck_at, soon)

    async def _clean_up(self) -> None:
        self._asked_at = anyio.current_time()
        self._stuck_at = self._asked_at + self._limits.stuck_sec if len(self._open) else math.inf
        try:
            for stuck in (await self._inspector.stuck())[:LEFTOVERS]:
                await self._clear(stuck)
        except NatsUnavailable as error:
            _log.debug("cannot look for leftovers: %s; later", error)
            self._ask_for_leftovers()

    async def _clear(self, stuck: StuckJob) -> None:
        if self._debt is not None:
            return
        found = await self._read(stuck.job.run_id) if stuck.job.run_id else None
        decision = on_leftover(
            Leftover(stuck.tag, stuck.subject, stuck.job),
            found.snapshot if found else None,
            self._clock(),
            is_quiet=found is not None
            and self._open.is_quiet(found.snapshot.run_id, found.revision, anyio.current_time()),
            has_other=found is not None and await self._has_other(found.snapshot, stuck.seq),
            grace_sec=self._limits.letter_grace_sec,
        )
        match decision:
            case Wait():
                self._ask_for_leftovers()
            case Discard(letter):
                if await self._inspector.holds(stuck.seq):  # another reconciler may have been quicker
                    self._debt = Debt(stuck.job.run_id, None, letter, stuck.seq)
                    await self._pay_again()
            case End():
                assert found is not None
                await self._end(decision, found.revision, stuck.seq)

    async def _has_other(self, snapshot: RunSnapshot, seq: int) -> bool:
        attempt = snapshot.attempt
        return attempt is not None and attempt.seq != seq and await self._inspector.holds(attempt.seq)

    # -- the end of a run ----------------------------------------------------------------------------------------------

    async def _read(self, run_id: str) -> StoredRun | None:
        try:
            return await self._store.get(run_id)
        except Unreadable as error:
            _log.warning("the snapshot of a run cannot be read: %s", error, extra={"run_id": run_id})
            return None

    async def _end(self, end: End, revision: int, seq: int | None = None) -> None:
        """Write the end over exactly that revision; whoever comes second does nothing more."""
        debt = self._debt = Debt(end.snapshot.run_id, end.snapshot, end.letter, seq)
        try:
            await self._store.update(end.snapshot, revision)
        except RevisionConflict:
            self._debt = None
            return
        except NatsUnavailable:
            return  # it may have been stored: the next round finds out
        debt.wanted = None
        self._open.forget(end.snapshot.run_id)
        self._tell(end)
        await self._pay_again()

    async def _pay_again(self) -> None:
        """Do what is left to do about the last run; what fails is tried again in the next round."""
        debt = self._debt
        if debt is None:
            return
        try:
            await self._pay(debt)
        except NatsUnavailable as error:
            debt.tries += 1
            if debt.tries >= TRIES:
                self._give_up(debt, error)

    async def _pay(self, debt: Debt) -> None:
        if debt.wanted is not None:
            found = await self._read(debt.wanted.run_id)
            if found is None or not _same_end(found.snapshot, debt.wanted):
                self._debt = None  # nothing was stored, or somebody else's end
                return
            debt.wanted = None
            self._open.forget(found.snapshot.run_id)
        if debt.letter is not None:
            await self._letters.publish(debt.letter)
            debt.letter = None
        if debt.seq is not None:
            await self._inspector.discard(debt.seq)
        self._debt = None

    async def _pay_at_last(self) -> None:
        debt = self._debt
        if debt is None:
            return
        with anyio.move_on_after(LAST_WORD_SEC, shield=True):
            try:
                await self._pay(debt)
            except NatsUnavailable as error:
                self._give_up(debt, error)

    def _give_up(self, debt: Debt, error: NatsUnavailable) -> None:
        self._debt = None
        about = {"err_id": "ERR-PYOCO-0011", "msg_id": "MSG-PYOCO-0011", "run_id": debt.run_id}
        _log.error("cannot store the dead letter of a run, or take its job off the queue: %s", error, extra=about)

    def _tell(self, end: End) -> None:
        about = {"run_id": end.snapshot.run_id, "flow_name": end.snapshot.flow_name, "tag": end.snapshot.tag}
        _log.warning("%s: %s", end.snapshot.status, end.snapshot.error, extra=about | {"reason": end.letter.reason})


def _same_end(found: RunSnapshot, wanted: RunSnapshot) -> bool:
    return (found.status, found.error, found.end_time) == (wanted.status, wanted.error, wanted.end_time)
