"""The streams, buckets and the object store of the contract. Missing ones are made; what exists is left as it is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from attrs import frozen
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, ObjectStoreConfig, RetentionPolicy, StreamConfig
from nats.js.errors import BadRequestError, NotFoundError

_log = logging.getLogger(__name__)

WORK_STREAM = "PYOCO_WORK"
_LEFT_ALONE = "what exists is left as it is; `nats stream edit <stream> --replicas <number>` changes it"
NAME_IN_USE = 10058  # JetStream's code for a stream of that name with other settings: somebody was faster


@frozen
class Names:
    """The names and limits of everything we keep in JetStream."""

    work_subject_prefix: str
    dlq_stream: str
    dlq_subject_prefix: str
    dlq_max_age_sec: float
    dlq_max_msgs: int
    dlq_max_bytes: int
    runs_bucket: str
    workers_bucket: str
    workers_ttl_sec: float
    auth_bucket: str
    wheels_bucket: str
    wheel_history_bucket: str
    wheel_history_ttl_sec: float
    promises_bucket: str = "pyoco_idempotency"
    promises_ttl_sec: float = 86_400.0
    replicas: int = 1


async def make_missing(js: JetStreamContext, names: Names) -> tuple[str, ...]:
    """Make what is not there and return its names; tells what is there with another number of replicas."""
    made: list[str] = []
    others: list[str] = []
    for name, stream, make in _wanted(js, names):
        replicas = await _replicas(js, stream)
        if replicas is None:
            await _make(make)
            made.append(name)
        elif replicas != names.replicas:
            others.append(f"{stream} has {replicas}")
    if others:
        _log.warning("PYOCO_NATS_REPLICAS is %d, but %s; %s", names.replicas, ", ".join(others), _LEFT_ALONE)
    return tuple(made)


def _wanted(js: JetStreamContext, names: Names) -> Iterator[tuple[str, str, Callable[[], Awaitable[object]]]]:
    """The name of everything that must be there, the stream that it is, and how it is made."""
    for stream in _streams(names):
        assert stream.name is not None
        yield stream.name, stream.name, partial(js.add_stream, stream)
    for bucket in _buckets(names):
        yield bucket.bucket, f"KV_{bucket.bucket}", partial(js.create_key_value, bucket)
    wheels, config = names.wheels_bucket, ObjectStoreConfig(replicas=names.replicas)
    yield wheels, f"OBJ_{wheels}", partial(js.create_object_store, wheels, config)


def _streams(names: Names) -> tuple[StreamConfig, ...]:
    return (
        StreamConfig(
            name=WORK_STREAM,
            subjects=[f"{names.work_subject_prefix}.>"],
            retention=RetentionPolicy.WORK_QUEUE,
            num_replicas=names.replicas,  # its consumers have as many, by default
        ),
        StreamConfig(
            name=names.dlq_stream,
            subjects=[f"{names.dlq_subject_prefix}.>"],
            retention=RetentionPolicy.LIMITS,
            max_age=names.dlq_max_age_sec,
            max_msgs=names.dlq_max_msgs,
            max_bytes=names.dlq_max_bytes,
            num_replicas=names.replicas,
        ),
    )


def _buckets(names: Names) -> Iterator[KeyValueConfig]:
    kept_for = {
        names.runs_bucket: None,
        names.workers_bucket: names.workers_ttl_sec,
        names.auth_bucket: None,
        names.wheel_history_bucket: names.wheel_history_ttl_sec,
        names.promises_bucket: names.promises_ttl_sec,
    }
    for bucket, ttl in kept_for.items():
        yield KeyValueConfig(bucket=bucket, history=1, direct=True, ttl=ttl, replicas=names.replicas)


async def _replicas(js: JetStreamContext, stream: str) -> int | None:
    """How many a stream has; None if it is not there."""
    try:
        found = await js.stream_info(stream)
    except NotFoundError:
        return None
    return found.config.num_replicas or 1


async def _make(make: Callable[[], Awaitable[object]]) -> None:
    try:
        await make()
    except BadRequestError as error:
        if error.err_code != NAME_IN_USE:
            raise
