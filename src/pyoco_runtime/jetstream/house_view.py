"""The consoles of all processes, asked over this process's own connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.jetstream.console import CHANGED
from pyoco_runtime.jetstream.hint_watch import NatsHintWatch
from pyoco_runtime.jetstream.house import House, not_here, restarted_path, subject_to_restart
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.jetstream.requests import NoResponders, Requests
from pyoco_runtime.model.house import ProcessReport

QUIET_SEC = 0.15  # processes on one NATS answer within a few milliseconds


class NatsHouseView:
    """Implements ports.HouseView."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._requests = Requests(link)

    async def reports(self) -> list[ProcessReport]:
        found = await House(self._link.client()).reports(quiet_sec=QUIET_SEC)
        if not found:  # not even this process has answered
            self._link.doubt()
            raise NatsUnavailable("no process answers")
        return found

    async def restart(self, process: str, actor: str) -> str:
        try:
            answer = await self._requests.ask(subject_to_restart(process), actor.encode())
        except NoResponders as error:
            raise not_here(process) from error
        return restarted_path(answer.data)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[NatsHintWatch]:
        watch = NatsHintWatch(self._link)
        try:
            await watch.open(CHANGED)
            yield watch
        finally:
            await watch.close()
