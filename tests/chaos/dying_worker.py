"""A worker that kills itself with SIGKILL at a chosen point of its first run: dying_worker.py <point> --role worker ...

It exchanges one method of one port for one that dies, and is pyoco-runtime otherwise.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from pyoco_runtime.cli.main import main
from pyoco_runtime.engine.process_runner import ProcessRunner
from pyoco_runtime.jetstream.delivery import NatsDelivery
from pyoco_runtime.jetstream.run_store import NatsRunStore
from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.progress import Progress, TaskStarted
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.settlement import Settlement

Update = Callable[[NatsRunStore, RunSnapshot, int], Awaitable[int]]


def die(*_: object) -> NoReturn:
    """As if the power went off, for this process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived SIGKILL")


def before_write(*, terminal: bool) -> None:
    """Die instead of the first such write."""
    update: Update = NatsRunStore.update

    async def dying(self: NatsRunStore, snapshot: RunSnapshot, revision: int) -> int:
        if snapshot.status.is_terminal is terminal:
            die()
        return await update(self, snapshot, revision)

    NatsRunStore.update = dying  # type: ignore[method-assign]


def after_write(*, terminal: bool) -> None:
    """Die when the first such write has been stored."""
    update: Update = NatsRunStore.update

    async def dying(self: NatsRunStore, snapshot: RunSnapshot, revision: int) -> int:
        stored = await update(self, snapshot, revision)
        if snapshot.status.is_terminal is terminal:
            die()
        return stored

    NatsRunStore.update = dying  # type: ignore[method-assign]


def at_first_task() -> None:
    """Die when the child process says that a task begins."""
    begin = ProcessRunner.begin

    async def dying(self: ProcessRunner, job: Job, attempt: Attempt, report: Callable[[Progress], None]) -> Any:
        def reporting(progress: Progress) -> None:
            if isinstance(progress, TaskStarted):
                die()
            report(progress)

        return await begin(self, job, attempt, reporting)

    ProcessRunner.begin = dying  # type: ignore[method-assign]


def while_settling() -> None:
    """Die when the ack is on its way and has not been answered."""

    async def dying(self: NatsDelivery, settlement: Settlement) -> None:
        client = self.link.client()
        await client.publish(self.reply, b"+ACK")
        await client.flush()
        die()

    NatsDelivery.settle = dying  # type: ignore[method-assign]


POINTS: dict[str, Callable[[], None]] = {
    "before-the-claim": lambda: before_write(terminal=False),
    "after-the-claim": lambda: after_write(terminal=False),
    "at-the-first-task": at_first_task,
    "before-the-end-is-stored": lambda: before_write(terminal=True),
    "before-the-ack": lambda: after_write(terminal=True),
    "while-settling": while_settling,
}


if __name__ == "__main__":
    POINTS[sys.argv.pop(1)]()
    sys.exit(main())
