"""The gate that keeps a worker from its first run until its wheels were looked after."""

from __future__ import annotations

import anyio


class WheelGate:
    """Closed until the first wheel sync was tried; it never closes again. It belongs to the tree."""

    def __init__(self, *, is_open: bool = False) -> None:
        self._opened = anyio.Event()
        if is_open:
            self.open()

    @property
    def is_open(self) -> bool:
        """Nobody has to wait."""
        return self._opened.is_set()

    def open(self) -> None:
        """Let everybody through, for good."""
        self._opened.set()

    async def wait(self) -> None:
        """Return once it is open: at once, if wheels are not synced at all."""
        await self._opened.wait()
