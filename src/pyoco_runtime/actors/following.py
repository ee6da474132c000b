"""How an actor keeps what is in memory as new as a feed of what is stored."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from attrs import frozen

from pyoco_runtime.core import Context
from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.ports import Link

C_co = TypeVar("C_co", covariant=True)
C = TypeVar("C")

_log = logging.getLogger(__name__)

RETRY_SEC = 0.5  # when the link says up and the feed fails all the same
TURN = 64  # changes, some 2 ms; a feed that has a batch at hand never waits by itself


class Changes(Protocol[C_co]):
    """A feed: first all that is stored, then every write."""

    async def next(self) -> C_co:
        """The next change. Raises NatsUnavailable when the feed is lost."""


@frozen
class Audience:
    """Who is told: that a feed begins, and that it is lost and why. What it says goes to the follower's own `tell`."""

    begin: Callable[[], None]
    lose: Callable[[str], None]


async def follow(
    context: Context,
    link: Link,
    subject: str,
    changes: Callable[[], AbstractAsyncContextManager[Changes[C]]],
    tell: Callable[[C], None],
    audience: Audience,
) -> None:
    """Follow the feed until asked to stop; one that is lost is opened anew. `subject` says of what, in the plural."""
    context.ready()
    with context.until_stopping():
        while True:
            await link.wait_up()
            try:
                async with changes() as feed:
                    await _read(feed, subject, tell, audience)
            except NatsUnavailable as error:
                _log.debug("the feed of %s was lost: %s; opening it again", subject, error)
                audience.lose(f"the feed of {subject} was lost: {error}")
                await anyio.sleep(RETRY_SEC)


async def _read(feed: Changes[C], subject: str, tell: Callable[[C], None], audience: Audience) -> None:
    audience.begin()
    try:
        while True:
            for _ in range(TURN):
                tell(await feed.next())
            await checkpoint()
    finally:
        audience.lose(f"nobody follows the feed of {subject}")
