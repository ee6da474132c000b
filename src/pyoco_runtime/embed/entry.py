"""`worker(...)`: the one call that embeds a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

import anyio

from pyoco_runtime.embed.embedded_worker import EmbeddedWorker
from pyoco_runtime.embed.loop_worker import LoopWorker
from pyoco_runtime.embed.order import Order, order_from
from pyoco_runtime.engine.resolver import Resolver
from pyoco_runtime.tree import DEFAULT_NATS_URL


def worker(
    *,
    flow_resolver: Resolver | str | None,
    tags: Sequence[str] = ("default",),
    nats_url: str | Sequence[str] = DEFAULT_NATS_URL,
    worker_id: str | None = None,
    concurrency: int = 4,
    isolation: Literal["thread", "process"] | None = None,
    drain_sec: float = 25.0,
    flows: Sequence[str] | None = None,
    **settings: object,
) -> AbstractAsyncContextManager[EmbeddedWorker]:
    """Run a worker around a block of an asyncio or trio program; raises InvalidSetting, which names the parameter.

    Entering does not wait for NATS. Leaving drains: runs may finish for `drain_sec`, what is left is given back to the
    queue. A cancel gives everything back now. If the worker gives up, the block is cancelled and raises why.

    A function as `flow_resolver` executes flows in threads of this process, "module:function" in child processes,
    unless `isolation` says otherwise; None takes flows from flow.yaml only. `flows` are the names of the flows that a
    function has, for others to know, if it has no attribute `flows` that says so. `settings` are any others of
    docs/reference/settings.md, by their lower-case names without PYOCO_. Nothing is read from anywhere else.
    """
    given = {"tags": tags, "nats_url": nats_url, "worker_id": worker_id, "concurrency": concurrency}
    return _running(order_from(flow_resolver, drain_sec, {**given, "isolation": isolation, **settings}, flows))


@asynccontextmanager
async def _running(order: Order) -> AsyncIterator[EmbeddedWorker]:
    if _is_on_trio():
        from pyoco_runtime.embed.thread_worker import ThreadWorker  # trio is there only if the program uses it

        in_thread = ThreadWorker(order)
        async with in_thread.running():
            yield in_thread
    else:
        here = LoopWorker(order)
        async with here.running():
            yield here


def _is_on_trio() -> bool:
    # anyio knows where we are, but has no public word for it but this
    return anyio.get_cancelled_exc_class().__module__.partition(".")[0] == "trio"
