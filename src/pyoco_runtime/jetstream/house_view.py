"""The consoles of all processes, asked over this process's own connection."""

from __future__ import annotations

from pyoco_runtime.jetstream.house import House
from pyoco_runtime.jetstream.link import NatsLink
from pyoco_runtime.model.house import ProcessReport

QUIET_SEC = 0.15  # processes on one NATS answer within a few milliseconds


class NatsHouseView:
    """Implements ports.HouseView."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def reports(self) -> list[ProcessReport]:
        return await House(self._link.client()).reports(quiet_sec=QUIET_SEC)

    async def restart(self, process: str, actor: str) -> str:
        return await House(self._link.client()).restart(process, actor)
