"""How long a body may take to come in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.errors import InvalidRequest

READ_SEC = 60.0  # for all of it; only wheels, which may be large, have a limit between two pieces instead


@asynccontextmanager
async def body_in_time() -> AsyncIterator[None]:
    """Read a body in this block. Raises InvalidRequest when it takes too long."""
    try:
        async with asyncio.timeout(READ_SEC):
            yield
    except TimeoutError:
        raise too_slow() from None


def too_slow() -> InvalidRequest:
    """What a client is told that does not come to the end of its body."""
    return InvalidRequest(f"the body did not come to its end within {READ_SEC:g} s")
