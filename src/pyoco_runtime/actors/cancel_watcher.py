"""The actor that notices when somebody writes to a run that we execute."""

from __future__ import annotations

import logging

import anyio

from pyoco_runtime.core import Alarm, Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.in_flight import InFlight, Seat
from pyoco_runtime.ports import Clock, Link, RunStore, RunWatch

_log = logging.getLogger(__name__)

SHORT_SEC = 0.2  # a run that is over by then is not worth a subscription
RETRY_SEC = 0.5  # when the link says up and the watch fails all the same


class CancelWatcher:
    """Have each run that was written to look at its snapshot. The run itself decides what to do about it."""

    def __init__(self, in_flight: InFlight, store: RunStore, link: Link, clock: Clock) -> None:
        self._in_flight = in_flight
        self._store = store
        self._link = link
        self._clock = clock
        self._alarm = Alarm()

    async def run(self, context: Context) -> None:
        """Watch until asked to stop; opens the watch anew when it is lost."""
        unlisten = self._in_flight.on_change(lambda: self._alarm.ring_within(SHORT_SEC))
        context.ready()
        try:
            with context.until_stopping():
                while True:
                    await self._link.wait_up()
                    try:
                        async with self._store.watching() as watch:
                            await self._watch(watch)
                    except NatsUnavailable as error:
                        _log.debug("the watch on runs was lost: %s; opening it again", error)
                        await anyio.sleep(RETRY_SEC)
        finally:
            unlisten()

    async def _watch(self, watch: RunWatch) -> None:
        chosen: frozenset[str] = frozenset()
        while True:
            seats = self._long_ones()
            ids = frozenset(seats)
            if ids != chosen:
                await watch.choose(ids)
                for run_id in ids - chosen:
                    seats[run_id].look()  # it may have been written to before we listened
                chosen = ids
            await self._next_hint(watch)

    async def _next_hint(self, watch: RunWatch) -> None:
        with self._alarm.until():
            run_id = await watch.next()
            for seat in self._in_flight:
                if seat.run_id == run_id:
                    seat.look()

    def _long_ones(self) -> dict[str, Seat]:
        now = self._clock()
        found = {}
        for seat in self._in_flight:
            age = now - seat.since
            if age >= SHORT_SEC or age < 0:
                found[seat.run_id] = seat
            else:
                self._alarm.ring_within(SHORT_SEC - age)
        return found
