"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from time import time

import httpx
from attrs import frozen

LONGEST_WISH_SEC = 60.0  # a gateway that wants more than this is away: its caller decides


@frozen
class Backoff:
    """Longer from time to time, and never the same for two clients that failed together."""

    retries: int = 3
    first_sec: float = 0.2
    factor: float = 3.0  # 0.2, 0.6, 1.8: long enough for a gateway to be started again
    most_sec: float = 5.0
    chance: Callable[[], float] = random.random

    def pause(self, failures: int) -> float:
        """The seconds to wait after so many failures, from 1 on."""
        whole = min(self.first_sec * self.factor ** min(failures - 1, 20), self.most_sec)
        return whole * (0.5 + 0.5 * self.chance())


def wish_of(response: httpx.Response) -> float | None:
    """The seconds that the gateway asks to be left alone, if it does."""
    asked = response.headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except ValueError:
        return None
