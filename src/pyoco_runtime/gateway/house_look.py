"""One look at all supervision trees for all who watch them."""

from __future__ import annotations

import math

import anyio

from pyoco_runtime.model.house import ProcessReport
from pyoco_runtime.ports import HouseView

PAUSE_SEC = 0.4  # between two looks: a crash is to be seen within a second, and a look takes 0.15 s


class HouseLook:
    """However many streams are open, and however often runs come and go, the processes are asked now and then."""

    def __init__(self, house: HouseView, pause_sec: float = PAUSE_SEC) -> None:
        self._house = house
        self._pause_sec = pause_sec
        self._lock = anyio.Lock()
        self._tried_at = -math.inf
        self._began_at = -math.inf
        self._reports: list[ProcessReport] = []

    async def since(self, moment: float) -> list[ProcessReport]:
        """What a look has found that began after this moment of anyio's clock. Raises NatsUnavailable."""
        async with self._lock:
            if self._began_at <= moment:
                await anyio.sleep_until(self._tried_at + self._pause_sec)
                self._tried_at = began_at = anyio.current_time()
                self._reports = await self._house.reports()
                self._began_at = began_at
            return self._reports
