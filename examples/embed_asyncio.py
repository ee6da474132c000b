"""A worker inside an asyncio program: flows change the program's own objects, and the program goes on beside it.

Run it: python examples/embed_asyncio.py [nats://host:4222]
Without a URL, here or in PYOCO_NATS_URL, it starts a NATS server of its own for as long as it runs.
"""

# ruff: noqa: TID251 - this is a program of somebody else, who uses asyncio, nats-py and pyoco
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nats
from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow

import pyoco_runtime
from pyoco_runtime.testing.nats_server import nats_server

TAG = "shop-asyncio"


class Shop:
    """The program's own state. Flows are executed in threads of this process, so they can use it."""

    def __init__(self) -> None:
        self.sold: list[str] = []
        self.flows = {"sell": Flow(name="sell") >> task(self.sell)}

    def sell(self, ctx: Context, item: str) -> int:
        """A task of the flow `sell`; `item` is a param of the run."""
        self.sold.append(item)
        return len(self.sold)

    def resolve(self, name: str) -> Flow:
        """The flow of that name; raises KeyError."""
        return self.flows[name]


async def main(nats_url: str) -> None:
    shop = Shop()
    async with pyoco_runtime.worker(flow_resolver=shop.resolve, tags=[TAG], nats_url=nats_url) as worker:
        await worker.wait_ready()
        print(f"{worker.worker_id} takes runs of the tag {TAG}")
        async with asyncio.timeout(10), asyncio.TaskGroup() as customers:
            for item in ("apples", "pears", "plums"):
                customers.create_task(buy(nats_url, item))
    print(f"sold: {', '.join(sorted(shop.sold))}")


async def buy(nats_url: str, item: str) -> None:
    """Submit a run and wait for its end. A gateway does this for those who speak HTTP."""
    client = await nats.connect(nats_url)
    try:
        js = client.jetstream()
        run_id = str(uuid.uuid4())
        job = {"run_id": run_id, "flow_name": "sell", "tag": TAG, "submitted_at": time.time(), "params": {"item": item}}
        runs = await js.key_value("pyoco_runs")
        await runs.create(run_id, json.dumps({**job, "status": "PENDING"}).encode())
        await js.publish(f"pyoco.work.{TAG}", json.dumps(job).encode())
        async for entry in await runs.watch(run_id):
            status = json.loads(entry.value)["status"] if entry and entry.value else "PENDING"
            if status in ("COMPLETED", "FAILED", "CANCELLED"):
                print(f"{item}: {status}")
                return
    finally:
        await client.close()


@contextmanager
def a_nats_server() -> Iterator[str]:
    """The URL of the server to use."""
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PYOCO_NATS_URL")
    if given:
        yield given
        return
    with TemporaryDirectory() as place, nats_server(Path(place)) as server:
        yield server.url


if __name__ == "__main__":
    with a_nats_server() as url:
        asyncio.run(main(url))
