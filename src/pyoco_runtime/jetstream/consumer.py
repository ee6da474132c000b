"""The consumer of a tag: what exists is respected, what is missing is made."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from pyoco_runtime.jetstream.requests import Refused, Requests
from pyoco_runtime.jetstream.resources import WORK_STREAM

SEC = 1_000_000_000
CONSUMER_NOT_FOUND = 10014
CONSUMER_EXISTS = frozenset({10105, 10148})  # with other settings: somebody was faster
DEFAULT_ACK_WAIT_SEC = 30.0  # the server's


@frozen
class ConsumerSettings:
    """How a missing consumer is made."""

    ack_wait_sec: float = 30.0
    max_deliver: int = 20
    max_ack_pending: int = 200


@frozen
class Consumer:
    """A consumer as it really is, whoever made it."""

    name: str
    tag: str
    ack_wait_sec: float
    max_deliver: int
    """0 or less: without end."""
    max_batch: int
    """0: any."""


async def consumer_of(requests: Requests, tag: str, subject: str, settings: ConsumerSettings) -> Consumer:
    """The consumer of that tag, made now if it is missing. Raises NatsUnavailable."""
    name = f"pyoco_workers_{tag}"
    config = await _found(requests, name) or await _made(requests, name, subject, settings)
    return Consumer(
        name=name,
        tag=tag,
        ack_wait_sec=config.get("ack_wait", 0) / SEC or DEFAULT_ACK_WAIT_SEC,
        max_deliver=config.get("max_deliver", -1),
        max_batch=config.get("max_batch", 0),
    )


async def _found(requests: Requests, name: str) -> dict[str, Any] | None:
    try:
        answer = await requests.call(f"$JS.API.CONSUMER.INFO.{WORK_STREAM}.{name}")
    except Refused as error:
        if error.err_code == CONSUMER_NOT_FOUND:
            return None
        raise
    return dict(answer["config"])


async def _made(requests: Requests, name: str, subject: str, settings: ConsumerSettings) -> dict[str, Any]:
    config = {
        "name": name,
        "durable_name": name,
        "filter_subject": subject,
        "deliver_policy": "all",
        "replay_policy": "instant",
        "ack_policy": "explicit",
        "ack_wait": int(settings.ack_wait_sec * SEC),
        "max_deliver": settings.max_deliver,
        "max_ack_pending": settings.max_ack_pending,
    }
    # "create" never changes one that is there
    body = {"stream_name": WORK_STREAM, "config": config, "action": "create"}
    try:
        answer = await requests.call(f"$JS.API.CONSUMER.CREATE.{WORK_STREAM}.{name}.{subject}", body)
    except Refused as error:
        if error.err_code not in CONSUMER_EXISTS:
            raise
        return await _found(requests, name) or config
    return dict(answer["config"])
