"""An embedded worker in a trio program: on an asyncio loop in a thread of its own.

NATS is spoken in asyncio only, and a bridge for every call would cost most of the speed. So everything runs over there;
what crosses between the threads are a few callbacks, by `call_soon_threadsafe` one way and `run_sync_soon` the other.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib.util
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import trio

from pyoco_runtime.core import ActorStatus
from pyoco_runtime.embed.loop_worker import LoopWorker
from pyoco_runtime.embed.order import Order
from pyoco_runtime.embed.readiness import Readiness
from pyoco_runtime.errors import NotRunning

T = TypeVar("T")


class ThreadWorker:
    """Implements EmbeddedWorker for a trio program."""

    def __init__(self, order: Order) -> None:
        self.worker_id = order.worker_id
        self._order = order
        self._host = trio.lowlevel.current_trio_token()
        self._readiness = Readiness()
        self._up_or_over = trio.Event()
        self._over = trio.Event()
        self._body = trio.CancelScope()
        self._is_asked = self._is_hurried = False
        self._failure: BaseException | None = None
        self._there: _Loop | None = None
        # A daemon: a program that dies must not be kept alive. An empty context, or the loop takes itself for trio.
        name = f"pyoco worker {order.worker_id}"
        self._thread = threading.Thread(target=contextvars.Context().run, args=(self._live,), name=name, daemon=True)

    # -- what the program asks for -------------------------------------------------------------------------------------

    async def wait_ready(self) -> None:
        await self._readiness.wait()

    def status(self) -> ActorStatus:
        return self._loop.ask(lambda: self._loop.worker.status())

    def restart(self, actor: str) -> None:
        self._loop.ask(lambda: self._loop.worker.restart(actor))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it around a block: leaving drains, a cancel stops it now. Raises its failure when it gives up."""
        error: Exception | None = None
        self._thread.start()
        try:
            await self._up_or_over.wait()
            if self._over.is_set():
                raise self._cause()
            with self._body:
                try:
                    yield
                except Exception as raised:  # noqa: BLE001 - kept, and raised again when the worker is down
                    error = raised
            self._ask_to_stop()
            await self._over.wait()
        finally:
            self._ask_to_stop(now=True)
            with trio.CancelScope(shield=True):
                await self._over.wait()
            self._thread.join()
        if self._failure is not None:
            raise self._failure
        if error is not None:
            raise error

    def _cause(self) -> BaseException:
        return self._failure or NotRunning("the worker stopped before it was up")

    @property
    def _loop(self) -> _Loop:
        assert self._there is not None  # the program gets us when it is up
        return self._there

    def _ask_to_stop(self, *, now: bool = False) -> None:
        self._is_asked = True
        self._is_hurried = self._is_hurried or now
        if self._there is not None:  # else it looks by itself when it is there
            self._there.tell(self._obey)

    def _end(self) -> None:
        self._over.set()
        self._up_or_over.set()
        self._body.cancel()

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        has_uvloop = importlib.util.find_spec("uvloop") is not None
        try:
            anyio.run(self._serve, backend="asyncio", backend_options={"use_uvloop": has_uvloop})
        except BaseException as error:  # noqa: BLE001 - raised in the program, which waits for it
            self._failure = error
        self._tell_host(self._end)

    async def _serve(self) -> None:
        worker = LoopWorker(self._order, lambda is_ready: self._tell_host(self._readiness.tell, is_ready))
        self._there = there = _Loop(worker)
        try:
            if self._is_asked:
                return
            async with worker.running():
                self._tell_host(self._up_or_over.set)
                await there.asked.wait()
        finally:
            there.close()

    def _obey(self) -> None:
        there = self._loop
        there.asked.set()
        if self._is_hurried:
            there.worker.stop_now()

    def _tell_host(self, what: Callable[..., object], *args: object) -> None:
        try:
            self._host.run_sync_soon(what, *args)
        except trio.RunFinishedError:  # the program has gone on without us
            return


class _Loop:
    """The other side: the worker, its loop, and what may be asked of it from here."""

    def __init__(self, worker: LoopWorker) -> None:
        self.worker = worker
        self.asked = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # the program's own stays on its side
        self._lock = threading.Lock()
        self._is_open = True

    def tell(self, what: Callable[[], None]) -> bool:
        """Have it called over there; says no if that has ended."""
        with self._lock:
            if self._is_open:
                self._loop.call_soon_threadsafe(what, context=self._context)
            return self._is_open

    def ask(self, question: Callable[[], T]) -> T:
        """Call it over there and wait for the answer, which takes as long as the other side is busy."""
        answer: Future[T] = Future()
        if not self.tell(lambda: _answer(answer, question)):
            return question()  # nobody else is there any more
        return answer.result()

    def close(self) -> None:
        """For the loop: the end is near. What was told before this is still called."""
        with self._lock:
            self._is_open = False


def _answer(answer: Future[T], question: Callable[[], T]) -> None:
    try:
        answer.set_result(question())
    except Exception as error:  # noqa: BLE001 - raised where the question came from
        answer.set_exception(error)
