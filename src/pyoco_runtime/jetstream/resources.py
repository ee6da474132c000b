"""The streams, buckets and the object store of the contract. Missing ones are made; what exists is left as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, RetentionPolicy, StreamConfig
from nats.js.errors import BadRequestError, NotFoundError

WORK_STREAM = "PYOCO_WORK"
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


async def make_missing(js: JetStreamContext, names: Names) -> tuple[str, ...]:
    """Make what is not there and return its names."""
    made: list[str] = []
    for stream in _streams(names):
        assert stream.name is not None
        if not await _exists(js, stream.name):
            await _make(lambda stream=stream: js.add_stream(stream))  # type: ignore[misc]
            made.append(stream.name)
    for bucket in _buckets(names):
        if not await _exists(js, f"KV_{bucket.bucket}"):
            await _make(lambda bucket=bucket: js.create_key_value(bucket))  # type: ignore[misc]
            made.append(bucket.bucket)
    if not await _exists(js, f"OBJ_{names.wheels_bucket}"):
        await _make(lambda: js.create_object_store(names.wheels_bucket))
        made.append(names.wheels_bucket)
    return tuple(made)


def _streams(names: Names) -> tuple[StreamConfig, ...]:
    return (
        StreamConfig(
            name=WORK_STREAM, subjects=[f"{names.work_subject_prefix}.>"], retention=RetentionPolicy.WORK_QUEUE
        ),
        StreamConfig(
            name=names.dlq_stream,
            subjects=[f"{names.dlq_subject_prefix}.>"],
            retention=RetentionPolicy.LIMITS,
            max_age=names.dlq_max_age_sec,
            max_msgs=names.dlq_max_msgs,
            max_bytes=names.dlq_max_bytes,
        ),
    )


def _buckets(names: Names) -> tuple[KeyValueConfig, ...]:
    return (
        KeyValueConfig(bucket=names.runs_bucket, history=1, direct=True),
        KeyValueConfig(bucket=names.workers_bucket, history=1, direct=True, ttl=names.workers_ttl_sec),
        KeyValueConfig(bucket=names.auth_bucket, history=1, direct=True),
        KeyValueConfig(bucket=names.wheel_history_bucket, history=1, direct=True, ttl=names.wheel_history_ttl_sec),
        KeyValueConfig(bucket=names.promises_bucket, history=1, direct=True, ttl=names.promises_ttl_sec),
    )


async def _exists(js: JetStreamContext, stream: str) -> bool:
    try:
        await js.stream_info(stream)
    except NotFoundError:
        return False
    return True


async def _make(make: Callable[[], Awaitable[object]]) -> None:
    try:
        await make()
    except BadRequestError as error:
        if error.err_code != NAME_IN_USE:
            raise
