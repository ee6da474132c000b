"""The work queue port of one simulated process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.lowlevel import checkpoint

from pyoco_runtime.errors import NatsUnavailable, PyocoError
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.settlement import GIVE_BACK, Settlement
from pyoco_runtime.model.wire import job_from, job_to
from pyoco_runtime.ports import Delivery, Puller
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_connection import MemoryConnection, outcome_of
from pyoco_runtime.testing.memory_consumer import ConsumerSettings, Handed, MemoryConsumer, PullRequest
from pyoco_runtime.testing.memory_stream import MemoryStream


class MemoryWorkQueue:
    """Implements ports.WorkQueue."""

    def __init__(self, connection: MemoryConnection, stream: MemoryStream, settings: ConsumerSettings) -> None:
        self._connection = connection
        self._stream = stream
        self._settings = settings

    async def publish(self, job: Job) -> int:
        data, by = job_to(job), self._connection.name
        return await self._connection.call("queue.publish", lambda: self._stream.publish(job.tag, data, job.run_id, by))

    async def publish_all(self, jobs: Sequence[Job]) -> list[int | PyocoError]:
        return [await outcome_of(self.publish(job)) for job in jobs]

    @asynccontextmanager
    async def pulling(self, tag: str) -> AsyncIterator[Puller]:
        made = await self._connection.call("queue.pull", lambda: self._stream.consumer(tag, self._settings))
        yield MemoryPuller(self._connection, self._stream, made)


class MemoryPuller:
    """Implements ports.Puller. Its requests stand in the server's line only while a call is under way."""

    def __init__(self, connection: MemoryConnection, stream: MemoryStream, consumer: MemoryConsumer) -> None:
        self._connection = connection
        self._stream = stream
        self._consumer = consumer
        self._is_busy = False

    async def take(self, limit: int) -> list[Delivery]:
        found: list[Handed] = []

        def fetch() -> None:
            found.extend(self._consumer.fetch(limit, self._connection.name, anyio.current_time()))

        self._begin()
        try:
            await self._connection.call("take", fetch)
        except anyio.get_cancelled_exc_class():
            self._give_back(found)
            raise
        finally:
            self._is_busy = False
        return [self._delivery(handed) for handed in found]

    async def wait(self) -> Delivery:
        request = PullRequest(self._connection.name)
        self._begin()
        try:
            return self._delivery(await self._wait(request))
        except anyio.get_cancelled_exc_class():
            self._consumer.withdraw(request)  # first: what is given back must not come straight here again
            self._give_back([request.handed] if request.handed else [])
            raise
        finally:
            self._consumer.withdraw(request)
            self._is_busy = False

    async def _wait(self, request: PullRequest) -> Handed:
        await checkpoint()
        lost = self._connection.open()
        trip = self._connection.faults.draw("wait")
        await self._connection.travel(trip.going_sec, lost)
        if trip.lost is Lost.BEFORE:
            raise NatsUnavailable("wait: the request was lost")
        handed = await self._stand_in_line(request, lost)
        await self._connection.travel(trip.coming_sec, lost)
        if trip.lost is Lost.AFTER or handed is None:
            raise NatsUnavailable("wait: the connection was lost")
        return handed

    async def _stand_in_line(self, request: PullRequest, lost: anyio.Event) -> Handed | None:
        def vanish() -> None:
            self._consumer.withdraw(request)
            request.bell.set()

        with self._connection.on_lost(vanish):
            self._consumer.ask(request, anyio.current_time())
            while request.handed is None and not lost.is_set():
                request.bell = anyio.Event()
                with anyio.CancelScope(deadline=self._consumer.next_due()):
                    await request.bell.wait()
                self._consumer.advance(anyio.current_time())
        return request.handed

    def _begin(self) -> None:
        assert not self._is_busy, "a puller takes one call at a time"
        self._is_busy = True

    def _give_back(self, found: list[Handed]) -> None:
        for handed in found:
            arrives = self._connection.faults.draw("give_back").lost is not Lost.BEFORE
            if self._connection.is_up and arrives:
                self._stream.settle(handed, GIVE_BACK, self._connection.name)

    def _delivery(self, handed: Handed) -> Delivery:
        return MemoryDelivery(self._connection, self._stream, self._consumer.settings, handed)


class MemoryDelivery:
    """Implements ports.Delivery; it may be settled after a reconnect, and by a stale owner too."""

    def __init__(
        self, connection: MemoryConnection, stream: MemoryStream, settings: ConsumerSettings, handed: Handed
    ) -> None:
        self._connection = connection
        self._stream = stream
        self._settings = settings
        self._handed = handed
        self._job = job_from(handed.message.data)

    @property
    def job(self) -> Job | InvalidJob:
        return self._job

    @property
    def attempt(self) -> Attempt:
        return Attempt(self._handed.message.seq, self._handed.delivery)

    @property
    def tag(self) -> str:
        return self._handed.message.tag

    @property
    def subject(self) -> str:
        return self._handed.message.subject

    @property
    def is_last(self) -> bool:
        return self._handed.delivery > 1 and 0 < self._settings.max_deliver <= self._handed.delivery

    @property
    def ack_wait_sec(self) -> float:
        return self._settings.ack_wait_sec

    async def in_progress(self) -> None:
        await self._connection.call("in_progress", lambda: self._stream.progress(self._handed))

    async def settle(self, settlement: Settlement) -> None:
        by = self._connection.name
        await self._connection.call("settle", lambda: self._stream.settle(self._handed, settlement, by))
