"""The jobs in the work stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pyoco_runtime.errors import PyocoError
from pyoco_runtime.jetstream.consumer import ConsumerSettings, consumer_of
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.puller import NatsPuller
from pyoco_runtime.jetstream.requests import Message, Requests
from pyoco_runtime.jetstream.resources import WORK_STREAM
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.wire import job_to

__all__ = ["ConsumerSettings", "NatsWorkQueue"]


class NatsWorkQueue:
    """Implements ports.WorkQueue over the stream PYOCO_WORK, which exists while the link is up."""

    def __init__(self, link: NatsLink, subject_prefix: str, consumer: ConsumerSettings) -> None:
        self._link = link
        self._prefix = subject_prefix
        self._settings = consumer
        self._requests = Requests(link)

    async def publish(self, job: Job) -> int:
        message = self._message(job)
        return await self._requests.store(message.subject, message.payload, message.headers)

    async def publish_all(self, jobs: Sequence[Job]) -> list[int | PyocoError]:
        return await self._requests.store_all([self._message(job) for job in jobs])

    def _message(self, job: Job) -> Message:
        headers = {"Nats-Msg-Id": job.run_id, "Nats-Expected-Stream": WORK_STREAM}
        return Message(f"{self._prefix}.{job.tag}", job_to(job), headers)

    @asynccontextmanager
    async def pulling(self, tag: str) -> AsyncIterator[NatsPuller]:
        consumer = await consumer_of(self._requests, tag, f"{self._prefix}.{tag}", self._settings)
        puller = NatsPuller(self._link, self._requests, consumer)
        try:
            yield puller
        finally:
            await puller.close()
