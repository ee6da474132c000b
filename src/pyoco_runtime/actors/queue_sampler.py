"""The actor that looks at the queue now and then, so that there is an hour to be shown when somebody asks."""

from __future__ import annotations

import logging

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.model.queue_minutes import Depth, QueueMinutes
from pyoco_runtime.ports import Clock, Link, QueueGauge, TagDepth

SAMPLE_SEC = 15.0  # four looks a minute; each costs a round trip or two for every tag

_log = logging.getLogger(__name__)


class QueueSampler:
    """While it is away, or NATS is, the minutes have a gap."""

    def __init__(
        self, gauge: QueueGauge, minutes: QueueMinutes, link: Link, clock: Clock, sample_sec: float = SAMPLE_SEC
    ) -> None:
        self._gauge = gauge
        self._minutes = minutes
        self._link = link
        self._clock = clock
        self._sample_sec = sample_sec

    async def run(self, context: Context) -> None:
        """Look until asked to stop."""
        context.ready()
        with context.until_stopping():
            while True:
                await self._link.wait_up()
                await self._look()
                await anyio.sleep(self._sample_sec)

    async def _look(self) -> None:
        try:
            depths = await self._gauge.read()
        except NatsUnavailable as error:
            _log.debug("the queue was not looked at: %s", error)
            return
        now = self._clock()
        self._minutes.note([(depth.tag, _depth(depth, now)) for depth in depths], now)


def _depth(depth: TagDepth, now: float) -> Depth:
    since = depth.oldest_waiting_at
    return Depth(depth.waiting, depth.in_hand, 0.0 if since is None else max(0.0, now - since))
