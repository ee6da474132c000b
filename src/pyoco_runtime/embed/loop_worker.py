"""An embedded worker on the asyncio loop that it is entered in."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import anyio

from pyoco_runtime.core import ActorStatus, Supervisor
from pyoco_runtime.embed.order import Order
from pyoco_runtime.embed.readiness import Readiness
from pyoco_runtime.logs import log_event
from pyoco_runtime.tree import Tree, plant

# The program that embeds us decides what it opens to the network, and nats-py's services warn on Python 3.12.
_LEFT_OUT = frozenset({"probe", "console"})


class LoopWorker:
    """Implements EmbeddedWorker; to be made, run and used in one asyncio loop."""

    def __init__(self, order: Order, on_ready_change: Callable[[bool], None] = lambda is_ready: None) -> None:
        """Wire it. Raises UserError."""
        self.worker_id = order.worker_id
        self._tree = plant(order.loaded, pool=order.pool(), without=_LEFT_OUT)
        self._readiness = Readiness()
        self._on_ready_change = on_ready_change
        assert self._tree.pulling is not None
        self._tree.pulling.tell(self._note_ready)
        self._supervisor = Supervisor(self._tree.spec, world=self._tree.world)
        self._supervisor.feed.listen(log_event)
        self._tree.desk.attach(self._supervisor)
        with _asyncio_by_name():
            self._context = contextvars.copy_context()  # for what may start actors

    async def wait_ready(self) -> None:
        await self._readiness.wait()

    def status(self) -> ActorStatus:
        return self._supervisor.status()

    def restart(self, actor: str) -> None:
        path = self._tree.desk.resolve(actor)
        self._context.run(self._tree.desk.restart, path)

    def stop_now(self) -> None:
        """Cancel everything instead of asking; runs are given back."""
        self._context.run(self._supervisor.stop, now=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it around a block: leaving drains, a cancel stops it now. Raises its failure when it gives up."""
        try:
            async with AsyncExitStack() as stack:
                with _asyncio_by_name():
                    await stack.enter_async_context(self._supervisor)
                yield
        finally:
            await _close(self._tree)

    def _note_ready(self, is_ready: bool) -> None:
        self._readiness.tell(is_ready)
        self._on_ready_change(is_ready)


@contextmanager
def _asyncio_by_name() -> Iterator[None]:
    """Have tasks that begin in the block, and their callbacks, know that they are on asyncio.

    anyio sees it in a task by itself; in a callback of the loop, such as a runner's report, only by this name. It must
    not stay in the program's own context, which may be copied into threads that run a loop of their own.
    """
    try:
        import sniffio
    except ModuleNotFoundError:  # then anyio asks asyncio, also in callbacks
        yield
        return
    token = sniffio.current_async_library_cvar.set("asyncio")
    try:
        yield
    finally:
        sniffio.current_async_library_cvar.reset(token)


async def _close(tree: Tree) -> None:
    """End the processes of the pool, and let no cancel keep us from it: anyio's shield does not hold native ones."""
    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        while True:
            try:
                await tree.aclose()
                break
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
    tree.close()
    if cancelled is not None:
        raise cancelled
