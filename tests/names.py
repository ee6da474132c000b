"""What the streams and buckets of tests are called: as the contract has it."""

from __future__ import annotations

from pyoco_runtime.jetstream.resources import Names

NAMES = Names(
    work_subject_prefix="pyoco.work",
    dlq_stream="PYOCO_DLQ",
    dlq_subject_prefix="pyoco.dlq",
    dlq_max_age_sec=604800,
    dlq_max_msgs=100000,
    dlq_max_bytes=536870912,
    runs_bucket="pyoco_runs",
    workers_bucket="pyoco_workers",
    workers_ttl_sec=604800,
    auth_bucket="pyoco_auth",
    wheels_bucket="pyoco_wheels",
    wheel_history_bucket="pyoco_wheel_history",
    wheel_history_ttl_sec=7776000,
)
