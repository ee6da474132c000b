"""Whether a worker takes runs, to be waited for."""

from __future__ import annotations

import anyio


class Readiness:
    """Says no until it is told otherwise."""

    def __init__(self) -> None:
        self._is_ready = anyio.Event()

    def tell(self, is_ready: bool) -> None:
        """That is how it is now."""
        if is_ready:
            self._is_ready.set()
        elif self._is_ready.is_set():
            self._is_ready = anyio.Event()

    async def wait(self) -> None:
        """Return as soon as it is so."""
        await self._is_ready.wait()
