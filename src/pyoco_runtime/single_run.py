"""The one run of a worker that takes no other."""

from __future__ import annotations

import anyio


class SingleRun:
    """Belongs to the tree. Its place is never given back, so that nobody takes a second job off the queue."""

    def __init__(self) -> None:
        self._taken = anyio.Event()
        self._over = anyio.Event()

    def begin(self) -> None:
        """The run is in our hands."""
        self._taken.set()

    def end(self) -> None:
        """The run has ended, and its job is settled or given back."""
        self._over.set()

    async def wait(self, within_sec: float) -> bool:
        """Wait until it is over; False if none was taken within that time."""
        with anyio.move_on_after(within_sec):
            await self._taken.wait()
        if not self._taken.is_set():
            return False
        await self._over.wait()
        return True
