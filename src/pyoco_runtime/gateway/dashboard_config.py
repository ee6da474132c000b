"""What the dashboard must know before it asks for anything."""

from __future__ import annotations

from typing import Literal

from attrs import frozen


@frozen(kw_only=True)
class DashboardConfig:
    """The page's own settings; nothing here is a secret: it is served without a key."""

    lang: Literal["auto", "ja", "en"] = "auto"
    version: str = ""
    stale_after_sec: float = 30.0
    """A run that says it is RUNNING and is silent for longer than this is shown as STALE."""
