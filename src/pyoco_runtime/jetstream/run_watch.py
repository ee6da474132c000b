"""Hints that chosen runs were written to."""

from __future__ import annotations

import logging

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.bucket import Bucket, is_key
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import Requests
from pyoco_runtime.jetstream.tap import forget, tap, untap
from pyoco_runtime.jetstream.translate import translating

_log = logging.getLogger(__name__)

SEC = 1_000_000_000
INACTIVE_SEC = 60.0  # the server removes the consumer of a process that was killed
CLOSE_SEC = 1.0


class NatsRunWatch:
    """Implements ports.RunWatch with one small consumer at the server, whose filter is changed with the choice.

    It sends the headers of new values of exactly the chosen runs. A plain subscription would hear a publish before it
    is stored, and one that is refused. Memory is bounded by the number of chosen runs: hints for the same run become
    one. When the connection is cut, however shortly, the watch is lost, because hints may be.
    """

    def __init__(self, link: NatsLink, requests: Requests, bucket: Bucket) -> None:
        self._client: Client = link.client()
        self._requests = requests
        self._stream = bucket.stream
        self._prefix = bucket.prefix
        self._inbox = self._client.new_inbox()
        self._name = self._inbox.rpartition(".")[2]
        self._subscription: Subscription | None = None
        self._chosen: frozenset[str] = frozenset()
        self._has_consumer = False
        self._hints: dict[str, None] = {}
        self._news = anyio.Event()
        self._is_lost = False
        self._forget_link = link.on_change(self._on_change)

    async def choose(self, run_ids: frozenset[str]) -> None:
        if self._is_lost:
            raise NatsUnavailable("the watch was lost with its connection")
        subjects = sorted(self._prefix + run_id for run_id in run_ids if is_key(run_id))
        self._chosen = run_ids
        self._hints = {run_id: None for run_id in self._hints if run_id in run_ids}
        if self._subscription is None:
            with translating():
                self._subscription = await tap(self._client, self._inbox, self._hear)
        if subjects:
            await self._requests.call(f"$JS.API.CONSUMER.CREATE.{self._stream}.{self._name}", self._consumer(subjects))
            self._has_consumer = True
        elif self._has_consumer:
            await self._delete()

    async def next(self) -> str:
        while not self._hints and not self._is_lost:
            self._news = anyio.Event()
            await self._news.wait()
        if self._is_lost:
            raise NatsUnavailable("the watch was lost with its connection")
        run_id = next(iter(self._hints))
        del self._hints[run_id]
        return run_id

    async def close(self) -> None:
        """Hear nothing more."""
        self._forget_link()
        try:
            with translating(), anyio.move_on_after(CLOSE_SEC, shield=True):
                if self._subscription is not None:
                    forget(self._client, self._subscription)
                    await untap(self._client, self._subscription)
                if self._has_consumer and not self._is_lost:
                    await self._delete()
        except NatsUnavailable as error:
            _log.debug("a watch ended while the connection was down: %s", error)

    async def _delete(self) -> None:
        self._has_consumer = False
        await self._requests.call(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._name}")

    def _consumer(self, subjects: list[str]) -> dict[str, object]:
        config = {
            "name": self._name,
            "deliver_subject": self._inbox,
            "deliver_policy": "new",
            "ack_policy": "none",
            "replay_policy": "instant",
            "headers_only": True,
            "filter_subjects": subjects,
            "inactive_threshold": int(INACTIVE_SEC * SEC),
            "mem_storage": True,
            "num_replicas": 1,
        }
        return {"stream_name": self._stream, "config": config}

    def _hear(self, message: Msg) -> None:
        run_id = message.subject[len(self._prefix) :]
        if run_id in self._chosen:
            self._hints[run_id] = None
            self._news.set()

    def _on_change(self) -> None:
        self._is_lost = True
        self._news.set()
