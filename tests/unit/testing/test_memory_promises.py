"""The idempotency keys in memory."""

from __future__ import annotations

import anyio

from pyoco_runtime.ports import Promise
from pyoco_runtime.testing.memory_jetstream import MemoryJetStream
from pyoco_runtime.testing.virtual_time import run_virtual


def test_a_promise_is_forgotten_after_a_day() -> None:
    """As the bucket forgets it."""

    async def main() -> None:
        promises = MemoryJetStream().process("p").promises
        first, second = Promise("r-1", "x", 0.0), Promise("r-2", "x", 0.0)
        assert await promises.claim("k", first) == first
        await anyio.sleep(86_000)
        assert await promises.claim("k", second) == first
        await anyio.sleep(500)
        assert await promises.claim("k", second) == second

    run_virtual(main)
