"""The actor that shows that this worker and its runs are alive."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import anyio
from attrs import evolve, frozen

from pyoco_runtime.core import Alarm, Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.in_flight import InFlight
from pyoco_runtime.model.offer import UNKNOWN, Offer
from pyoco_runtime.model.worker import WheelSync, WorkerRecord, WorkerState
from pyoco_runtime.ports import Clock, Link, WorkerRegistry

_log = logging.getLogger(__name__)

QUIET_SEC = 0.5  # many short runs are one change of the record
GOOD_BYE_SEC = 2.0  # for the last word; NATS may be away
RETRY_SEC = 0.5  # between two tries to say it


@frozen
class Identity:
    """Who this worker is."""

    worker_id: str
    instance_id: str
    tags: tuple[str, ...]
    concurrency: int


class WheelNews:
    """The last word of the wheel syncer; belongs to the tree."""

    def __init__(self, status: WheelSync) -> None:
        self.status = status

    def tell(self, status: WheelSync) -> None:
        """This is how it went."""
        self.status = status


class OfferNews:
    """What the worker can run, as far as it is known; belongs to the tree."""

    def __init__(self) -> None:
        self.offer = UNKNOWN
        self.on_change: Callable[[], None] = lambda: None

    def tell(self, offer: Offer) -> None:
        """That is what it can run from now on."""
        self.offer = offer
        self.on_change()


class Heartbeat:
    """Write the worker record every `worker_sec` and soon after a change; ask runs to beat every `run_sec`."""

    def __init__(
        self,
        who: Identity,
        in_flight: InFlight,
        registry: WorkerRegistry,
        wheels: WheelNews,
        link: Link,
        clock: Clock,
        *,
        worker_sec: float,
        run_sec: float,
        offers: OfferNews | None = None,
    ) -> None:
        self._offers = offers or OfferNews()
        self._who = who
        self._in_flight = in_flight
        self._registry = registry
        self._wheels = wheels
        self._link = link
        self._clock = clock
        self._worker_sec = worker_sec
        self._run_sec = run_sec
        self._alarm = Alarm()
        self._record_at = -math.inf
        self._beat_at = -math.inf
        self._shown: tuple[object, ...] = ()

    async def run(self, context: Context) -> None:
        """Beat until asked to stop, then say good-bye."""
        unlisten = self._in_flight.on_change(lambda: self._alarm.ring_within(QUIET_SEC))
        unwatch = self._link.on_change(lambda: self._alarm.ring_within(0))
        self._offers.on_change = lambda: self._alarm.ring_within(QUIET_SEC)
        context.ready()
        try:
            with context.until_stopping():
                while True:
                    self._beat_runs()
                    await self._show()
                    with self._alarm.until(self._next_time()):
                        await anyio.sleep_forever()
            await self._say_good_bye()
        finally:
            unlisten()
            unwatch()
            self._offers.on_change = lambda: None

    def _beat_runs(self) -> None:
        now = anyio.current_time()
        if now < self._beat_at + self._run_sec:
            return
        self._beat_at = now
        wall = self._clock()
        for seat in self._in_flight:
            if not 0 <= wall - seat.since < self._run_sec:  # a young run has just written its claim
                seat.beat()

    def _next_time(self) -> float:
        next_record = self._record_at + self._worker_sec
        return min(next_record, self._beat_at + self._run_sec) if len(self._in_flight) else next_record

    async def _show(self) -> None:
        doing = self._doing()
        now = anyio.current_time()
        due = now >= self._record_at + self._worker_sec
        if not due and doing == self._shown:
            return
        if not self._link.is_up:
            self._shown = ()  # it is written as soon as the link is up again
            self._record_at = now
            return
        try:
            await self._registry.publish(self._record())
        except NatsUnavailable as error:
            _log.debug("cannot write the worker record: %s; trying again", error)
            self._shown = ()
            self._alarm.ring_within(RETRY_SEC)
        else:
            self._shown = doing
        self._record_at = now

    def _doing(self) -> tuple[object, ...]:
        return (len(self._in_flight) > 0, self._wheels.status, self._offers.offer)

    def _record(self) -> WorkerRecord:
        now = self._clock()
        seats = list(self._in_flight)
        last = self._in_flight.last
        return WorkerRecord(
            worker_id=self._who.worker_id,
            instance_id=self._who.instance_id,
            state=WorkerState.RUNNING if seats else WorkerState.IDLE,
            tags=self._who.tags,
            last_seen_at=now,
            last_heartbeat_at=now,
            heartbeat_at=now,
            current_run_id=seats[0].run_id if seats else None,
            last_run_id=last.run_id if last else None,
            last_run_status=last.status if last else None,
            last_run_started_at=self._in_flight.last_started_at,
            last_run_finished_at=last.finished_at if last else None,
            updated_at=now,
            wheel_sync=self._wheels.status,
            flows=self._offers.offer.flows,
            tasks=self._offers.offer.tasks,
            extra={"concurrency": self._who.concurrency, "current_run_ids": [seat.run_id for seat in seats]},
        )

    async def _say_good_bye(self) -> None:
        record = evolve(
            self._record(),
            state=WorkerState.STOPPED_GRACEFUL,
            current_run_id=None,
            stopped_at=self._clock(),
            stop_reason="graceful_shutdown",
        )
        problem = "no answer"
        with anyio.move_on_after(GOOD_BYE_SEC):
            while True:
                try:
                    await self._registry.publish(record)
                    return
                except NatsUnavailable as error:
                    problem = str(error)
                await anyio.sleep(RETRY_SEC)
        _log.warning("cannot tell the registry that this worker stops: %s", problem)
