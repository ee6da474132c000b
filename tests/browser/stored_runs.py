"""Runs that have been, straight into the store: many of them, or such as take too long to come about."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

import anyio
import nats
from anyio.from_thread import start_blocking_portal

from pyoco_runtime.model.run import RunSnapshot, RunStatus, TaskStatus
from pyoco_runtime.model.wire import snapshot_to
from tests.integration.worker_client import MAX_BYTES
from tests.names import NAMES

AT_ONCE = 500  # writes in flight
STATUSES = (RunStatus.COMPLETED,) * 8 + (RunStatus.FAILED, RunStatus.CANCELLED)
FLOWS = ("hello", "report", "looping", "switching")


def many(count: int, flow: str | None = None, tag: str = "archive") -> Iterable[RunSnapshot]:
    """So many ended runs, a second apart, the newest now."""
    now = time.time()
    for number in range(count):
        ended = now - number
        status = STATUSES[number % len(STATUSES)]
        task = TaskStatus.SUCCEEDED if status is RunStatus.COMPLETED else TaskStatus.FAILED
        yield RunSnapshot(
            run_id=str(uuid.uuid4()),
            flow_name=flow or FLOWS[number % len(FLOWS)],
            status=status,
            tag=tag,
            tags=(tag,),
            tasks={"greet": task},
            worker_id=f"w{number % 7}",
            start_time=ended - 0.2,
            end_time=ended,
            heartbeat_at=ended,
            updated_at=ended,
            error="ValueError: no such order" if status is RunStatus.FAILED else None,
        )


def store(nats_url: str, runs: Iterable[RunSnapshot]) -> None:
    """Write them; the buckets are there already."""
    with start_blocking_portal() as portal:  # in a thread of its own: in this one Playwright's loop counts as running
        portal.call(_store, nats_url, list(runs))


async def _store(nats_url: str, runs: list[RunSnapshot]) -> None:
    client = await nats.connect(nats_url)
    try:
        kv = await client.jetstream().key_value(NAMES.runs_bucket)

        async def put(run: RunSnapshot) -> None:
            await kv.put(run.run_id, snapshot_to(run, MAX_BYTES)[0])

        for begin in range(0, len(runs), AT_ONCE):
            async with anyio.create_task_group() as writes:
                for run in runs[begin : begin + AT_ONCE]:
                    writes.start_soon(put, run)
    finally:
        await client.close()
