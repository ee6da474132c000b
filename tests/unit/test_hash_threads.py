"""The threads of the hashes; on real time, as threads have no other, but awaited by events."""

from __future__ import annotations

import asyncio
import threading

import anyio
import anyio.to_thread
import pytest

from pyoco_runtime.hash_threads import MOST, HashThreads, half_of_the_cores

PATIENCE_SEC = 10.0


class Work:
    """Work that says how many are at it, and goes on until it is let go."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.at_work = 0
        self.most = 0
        self.done = 0

    def __call__(self) -> int:
        with self.lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.begun.release()
        assert self.may_end.wait(PATIENCE_SEC)
        with self.lock:
            self.at_work -= 1
            self.done += 1
        return 7

    async def wait_begun(self) -> None:
        assert await anyio.to_thread.run_sync(self.begun.acquire, True, PATIENCE_SEC)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_no_more_than_the_limit_at_a_time(backend: str) -> None:
    """And everybody has a turn."""

    async def main() -> None:
        work, threads = Work(), HashThreads(2)
        made: list[int] = []

        async def run(lane: str) -> None:
            made.append(await threads.run(work, lane))

        with anyio.fail_after(PATIENCE_SEC):
            async with anyio.create_task_group() as group:
                for n in range(10):
                    group.start_soon(run, f"lane-{n % 3}")
                await work.wait_begun()
                await work.wait_begun()
                work.may_end.set()
        assert made == [7] * 10
        assert work.most == 2

    anyio.run(main, backend=backend)


def test_requests_that_are_cut_off_natively_leave_no_crowd_of_threads() -> None:
    """A client that connects, presents a key and hangs up, a hundred times: the threads left behind count."""

    async def main() -> None:
        work, threads = Work(), HashThreads(2)
        with anyio.fail_after(PATIENCE_SEC):
            for n in range(100):
                tasks = [asyncio.create_task(threads.run(work, f"lane-{n}")) for n in range(3)]
                if n == 0:
                    await work.wait_begun()
                    await work.wait_begun()
                for _ in range(n % 5):
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert work.most <= 2
            work.may_end.set()
            assert await threads.run(work, "after") == 7
        assert work.most <= 2
        assert not threads._at_work

    asyncio.run(main())


def test_an_error_is_passed_on_and_takes_no_place() -> None:
    """As often as it happens."""

    def fail() -> None:
        raise ZeroDivisionError

    async def main() -> None:
        threads = HashThreads(1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await threads.run(fail, "lane")
        assert await threads.run(lambda: 1, "lane") == 1

    anyio.run(main)


def test_some_of_the_machine_is_left() -> None:
    """At least one thread, and no more than a few."""
    assert 1 <= half_of_the_cores() <= MOST
