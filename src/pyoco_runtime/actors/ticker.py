"""The actor that keeps deliveries ours while their runs execute."""

from __future__ import annotations

import logging
import math

import anyio

from pyoco_runtime.core import Alarm, Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.in_flight import InFlight

_log = logging.getLogger(__name__)

SHARE = 3  # signs of life within one ack wait: two may be lost
RETRY_SEC = 1.0  # after a round that failed: the next period may be too late


class Ticker:
    """Give a sign of life for every delivery in flight, at least every `interval_sec` and thrice an ack wait."""

    def __init__(self, in_flight: InFlight, interval_sec: float) -> None:
        self._in_flight = in_flight
        self._interval_sec = interval_sec
        self._alarm = Alarm()
        self._failing = False

    async def run(self, context: Context) -> None:
        """Tick until asked to stop. The first tick is at once: an earlier life may have ended long ago."""
        unlisten = self._in_flight.on_change(self._on_change)
        context.ready()
        try:
            with context.until_stopping():
                while True:
                    await self._tick()
                    with self._alarm.until(anyio.current_time() + self._pause()):
                        await anyio.sleep_forever()
        finally:
            unlisten()

    def _on_change(self) -> None:
        if len(self._in_flight):
            self._alarm.ring_within(self._period())

    def _pause(self) -> float:
        if not len(self._in_flight):
            return math.inf
        return min(self._period(), RETRY_SEC) if self._failing else self._period()

    def _period(self) -> float:
        return min((self._interval_sec, *(seat.delivery.ack_wait_sec / SHARE for seat in self._in_flight)))

    async def _tick(self) -> None:
        for seat in self._in_flight:
            if seat not in self._in_flight:
                continue  # settled during this round: a sign of life after a NAK would keep the job back
            try:
                await seat.delivery.in_progress()
            except NatsUnavailable as error:
                self._say(seat.run_id, error)
                return  # the others would fail as well; the next round comes soon
        self._failing = False

    def _say(self, run_id: str, error: NatsUnavailable) -> None:
        if not self._failing:
            self._failing = True
            about = {"err_id": "ERR-PYOCO-0009", "msg_id": "MSG-PYOCO-0009", "run_id": run_id}
            _log.warning("cannot show progress: %s; trying again", error, extra=about)
