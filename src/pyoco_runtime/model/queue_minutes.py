"""How full the queue was in the last hour, minute by minute."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

from attrs import frozen

from pyoco_runtime.model.run_minutes import MINUTES, minute_of, minutes_until

MOST_TAGS = 100
FRESH_SEC = 30  # a look that is younger stands also for the minute that has just begun


@frozen
class Depth:
    """What waited under a tag; of several looks in a minute, the worst."""

    waiting: int
    in_hand: int
    oldest_sec: float

    def joined(self, other: Depth) -> Depth:
        """The worse of both."""
        return Depth(
            max(self.waiting, other.waiting), max(self.in_hand, other.in_hand), max(self.oldest_sec, other.oldest_sec)
        )


NOTHING_WAITS = Depth(0, 0, 0.0)


class QueueMinutes:
    """Filled by the queue sampler; belongs to the tree."""

    def __init__(self) -> None:
        self._minutes: dict[int, dict[str, Depth]] = {}
        self.since: float | None = None
        """When the first look was taken."""
        self._latest: dict[str, Depth] = {}
        self._looked_at = -math.inf

    def note(self, depths: Iterable[tuple[str, Depth]], now: float) -> None:
        """That is how it looks at this moment; a tag that is not named has nothing."""
        minute = minute_of(now)
        self.since = now if self.since is None else self.since
        for old in [each for each in self._minutes if not minute - MINUTES < each <= minute]:
            del self._minutes[old]
        known = self._minutes.setdefault(minute, {})
        self._latest, self._looked_at = dict(islice(depths, MOST_TAGS)), now
        for tag, depth in self._latest.items():
            if tag in known or len(known) < MOST_TAGS:
                known[tag] = known.get(tag, depth).joined(depth)

    def by_tag(self, now: float) -> dict[str, tuple[Depth | None, ...]]:
        """The hour of every tag, oldest minute first; None where nobody looked."""
        hour = [self._minutes.get(minute) for minute in minutes_until(now)]
        if hour[-1] is None and 0 <= now - self._looked_at <= FRESH_SEC:
            hour[-1] = self._latest
        tags = sorted({tag for minute in hour if minute is not None for tag in minute})
        return {
            tag: tuple(None if minute is None else minute.get(tag, NOTHING_WAITS) for minute in hour) for tag in tags
        }
