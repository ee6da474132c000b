"""The link actor on a scripted connection, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from pyoco_runtime.actors.link import Link
from pyoco_runtime.core import ActorSpec, Supervisor, SupervisorSpec
from pyoco_runtime.ports import LinkStatus
from pyoco_runtime.testing.memory_link import MemoryLink
from pyoco_runtime.testing.stress import stress_start_cancel


@asynccontextmanager
async def supervised(link: MemoryLink) -> AsyncIterator[Supervisor]:
    async with Supervisor(SupervisorSpec("root", (ActorSpec("link", lambda: Link(link)),))) as tree:
        yield tree


@pytest.mark.trio
async def test_the_tree_starts_while_nats_is_away(autojump_clock: object) -> None:
    """Ready at once, down with the reason, up as soon as NATS answers; an hour of refusals is no crash."""
    link = MemoryLink()
    link.refuse_connect = 3600
    async with supervised(link) as tree:
        assert not link.is_up
        await trio.sleep(60)
        assert link.problem == "connection refused"
        await link.wait_up()
        assert tree.status().children[0].restarts == 0


@pytest.mark.trio
async def test_lost_and_restored(autojump_clock: object) -> None:
    """While it is lost everybody fails fast; when it is back the resources are checked before it is up."""
    link = MemoryLink()
    async with supervised(link) as tree:
        await link.wait_up()
        link.say(LinkStatus.LOST)
        await trio.sleep(1)
        assert not link.is_up
        assert "reconnecting" in link.problem
        link.refuse_prepare = 2
        link.say(LinkStatus.CONNECTED)
        await link.wait_up()
        assert (link.connects, link.prepares) == (1, 4)
        assert tree.status().children[0].restarts == 0


@pytest.mark.trio
async def test_a_connection_closed_for_good_is_a_crash_and_a_new_connection(autojump_clock: object) -> None:
    """The supervisor gives the link a new life; the handle is the same and comes up again."""
    link = MemoryLink()
    async with supervised(link) as tree:
        await link.wait_up()
        link.say(LinkStatus.CLOSED)
        await trio.sleep(0.001)
        await link.wait_up()
        assert link.epoch == 2
        status = tree.status().children[0]
        assert status.restarts == 1
        assert status.last_crash is not None
        assert status.last_crash.type == "LinkClosed"
    assert link.closed == 2
    assert not link.is_up


def test_the_link_survives_start_and_cancel_stress() -> None:
    """At every moment, stopped, restarted or cancelled: nothing is left behind."""

    def make() -> Link:
        link = MemoryLink()
        link.refuse_connect = 1
        return Link(link)

    stress_start_cancel(make)
