"""Days as people count them: from midnight to midnight where this process runs."""

from __future__ import annotations

from datetime import datetime, time


def midnight_before(at: float) -> float:
    """The timestamp at which the day of this one began."""
    day = datetime.fromtimestamp(at).astimezone()
    return datetime.combine(day.date(), time(), day.tzinfo).timestamp()
