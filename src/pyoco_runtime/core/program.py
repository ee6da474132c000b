"""A tree as a whole program: signals stop it, first by asking, then now."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

from pyoco_runtime.core.supervisor import Supervisor
from pyoco_runtime.errors import ActorError, NotRunning


async def run_program(
    tree: Supervisor, on_up: Callable[[], None], until: Callable[[], Awaitable[None]] = anyio.sleep_forever
) -> signal.Signals | None:
    """Run the tree until SIGINT or SIGTERM, or the end of `until`, has it stop in order; a second signal stops it now.

    Returns the first signal, if one came. Raises the tree's failure when it gives up.
    """
    received: list[signal.Signals] = []
    failure: ActorError | None = None

    async def obey(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                received.append(number)
                tree.stop(now=len(received) > 1)

    async with anyio.create_task_group() as group:
        await group.start(obey)
        try:
            async with tree:
                on_up()
                await until()
        except ActorError as error:
            failure = error
        group.cancel_scope.cancel()
    if failure is not None and not (received and isinstance(failure, NotRunning)):
        raise failure
    return received[0] if received else None
