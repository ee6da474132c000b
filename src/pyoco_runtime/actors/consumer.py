"""The actor that takes jobs of one tag off the queue, as many as there are free places."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from pyoco_runtime.core import Context
from pyoco_runtime.errors import DuplicateChild, NatsUnavailable, NotRunning
from pyoco_runtime.model.settlement import GIVE_BACK
from pyoco_runtime.ports import Delivery, Link, Puller, WorkQueue
from pyoco_runtime.slots import Slots

_log = logging.getLogger(__name__)

RETRY_SEC = 0.5  # when the link says up and the queue fails all the same
HOLD_SEC = 0.25  # a job that came as the last place was taken waits so long for another before it is given back
GIVE_BACK_SEC = 2.0
PAUSE_SEC = 5.0  # at most, while no run can be started: a job has only so many deliveries


class Consumer:
    """Take what waits in one's turn; when nothing waits, stand in line for the next job until all places are taken.

    taking --nothing there--> standing --a job, or every place is taken--> taking
    """

    def __init__(
        self,
        tag: str,
        queue: WorkQueue,
        link: Link,
        slots: Slots,
        launch: Callable[[Delivery], None],
        may_begin: Callable[[], Awaitable[None]],
    ) -> None:
        self._tag = tag
        self._queue = queue
        self._link = link
        self._slots = slots
        self._launch = launch
        self._may_begin = may_begin
        self._is_refused = False

    async def run(self, context: Context) -> None:
        """Pull until asked to stop. What arrives after that is given back."""
        context.ready()
        with context.until_stopping():
            await self._may_begin()
            while True:
                await self._link.wait_up()
                try:
                    async with self._queue.pulling(self._tag) as puller:
                        await self._pull(puller)
                except NatsUnavailable as error:
                    _log.debug("cannot pull jobs: %s; trying again", error, extra={"tag": self._tag})
                    await anyio.sleep(RETRY_SEC)

    async def _pull(self, puller: Puller) -> None:
        pause_sec = RETRY_SEC
        while True:
            self._is_refused = False
            if not await self._take(puller):
                await self._stand(puller)
            if self._is_refused:
                await anyio.sleep(pause_sec)
                pause_sec = min(2 * pause_sec, PAUSE_SEC)
            else:
                pause_sec = RETRY_SEC

    async def _take(self, puller: Puller) -> bool:
        reserved = await self._slots.reserve()
        came: list[Delivery] = []
        try:
            came = await puller.take(reserved)
        finally:
            self._slots.give_back(reserved - len(came))
        for delivery in came:
            await self._start(delivery)
        return bool(came)

    async def _stand(self, puller: Puller) -> None:
        delivery = None
        with self._slots.until_full():
            delivery = await puller.wait()
        if delivery is None:
            return
        if self._slots.try_reserve() or await self._held_for_a_place(delivery):
            await self._start(delivery)
        else:
            await _give_back(delivery)

    async def _held_for_a_place(self, delivery: Delivery) -> bool:
        reserved = 0
        try:
            with anyio.move_on_after(HOLD_SEC):
                reserved = await self._slots.reserve(most=1)
        except BaseException:
            await _give_back(delivery)
            raise
        return reserved > 0

    async def _start(self, delivery: Delivery) -> None:
        self._slots.occupy()
        try:
            self._launch(delivery)
        except (NotRunning, DuplicateChild) as error:
            self._is_refused = isinstance(error, NotRunning)
            self._slots.vacate()
            await _give_back(delivery)


async def _give_back(delivery: Delivery) -> None:
    with anyio.move_on_after(GIVE_BACK_SEC, shield=True):
        try:
            await delivery.settle(GIVE_BACK)
        except NatsUnavailable as error:
            _log.debug("cannot give a job back: %s; it comes back after its ack wait", error)
