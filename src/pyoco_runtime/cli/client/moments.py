"""Times as people read them."""

from __future__ import annotations

import time


def ago(moment: object, now: float | None = None) -> str:
    """How long ago that was, in its largest unit; `-` for what is no time."""
    if not isinstance(moment, int | float):
        return "-"
    return duration((time.time() if now is None else now) - moment)


def duration(seconds: float) -> str:
    """A duration in its largest unit."""
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def clock(moment: object) -> str:
    """Date and time here, to the second; `-` for what is no time."""
    if not isinstance(moment, int | float):
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def size(count: object) -> str:
    """Bytes in the unit that reads well; `-` for what is no number."""
    if not isinstance(count, int | float):
        return "-"
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
