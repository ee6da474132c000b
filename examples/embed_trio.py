"""A worker inside a trio program: it lives in a thread of its own, and ends with its block as any trio child does.

Run it: python examples/embed_trio.py [nats://host:4222] (needs trio: pip install "pyoco-runtime[testing]")
Without a URL, here or in PYOCO_NATS_URL, it starts a NATS server of its own for as long as it runs.
"""

# ruff: noqa: TID251 - this is a program of somebody else, who uses trio, nats-py and pyoco
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
import trio
from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow

import pyoco_runtime
from pyoco_runtime.testing.nats_server import nats_server

TAG = "shop-trio"


class Shop:
    """The program's own state. Flows wake the program up from their threads through trio's token."""

    def __init__(self) -> None:
        self.sold: list[str] = []
        self.sold_out = trio.Event()
        self._trio = trio.lowlevel.current_trio_token()
        self.flows = {"sell": Flow(name="sell") >> task(self.sell)}

    def sell(self, ctx: Context, item: str) -> int:
        """A task of the flow `sell`; `item` is a param of the run."""
        return trio.from_thread.run_sync(self.hand_out, item, trio_token=self._trio)

    def hand_out(self, item: str) -> int:
        """In trio's own thread: no lock is needed."""
        self.sold.append(item)
        if len(self.sold) == 3:
            self.sold_out.set()
        return len(self.sold)

    def resolve(self, name: str) -> Flow:
        """The flow of that name; raises KeyError."""
        return self.flows[name]


async def main(nats_url: str) -> None:
    shop = Shop()
    with trio.fail_after(10):
        async with pyoco_runtime.worker(flow_resolver=shop.resolve, tags=[TAG], nats_url=nats_url) as worker:
            await worker.wait_ready()
            print(f"{worker.worker_id} takes runs of the tag {TAG}")
            async with trio.open_nursery() as customers:
                for item in ("apples", "pears", "plums"):
                    customers.start_soon(buy, nats_url, item)
            await shop.sold_out.wait()
    print(f"sold: {', '.join(sorted(shop.sold))}")


async def buy(nats_url: str, item: str) -> None:
    """Submit a run and wait for its end, in a thread: nats-py is for asyncio only."""
    status = await trio.to_thread.run_sync(lambda: asyncio.run(submitted(nats_url, {"item": item})))
    print(f"{item}: {status}")


async def submitted(nats_url: str, params: dict[str, str]) -> str:
    """Put a run on the queue; returns its last status. A gateway does this for those who speak HTTP."""
    client = await nats.connect(nats_url)
    try:
        js = client.jetstream()
        run_id = str(uuid.uuid4())
        job = {"run_id": run_id, "flow_name": "sell", "tag": TAG, "submitted_at": time.time(), "params": params}
        runs = await js.key_value("pyoco_runs")
        await runs.create(run_id, json.dumps({**job, "status": "PENDING"}).encode())
        await js.publish(f"pyoco.work.{TAG}", json.dumps(job).encode())
        async for entry in await runs.watch(run_id):
            status: str = json.loads(entry.value)["status"] if entry and entry.value else "PENDING"
            if status in ("COMPLETED", "FAILED", "CANCELLED"):
                return status
    finally:
        await client.close()
    raise RuntimeError("NATS went away")


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
        trio.run(main, url)
