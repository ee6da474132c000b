"""What /ready needs to know."""

from __future__ import annotations

from typing import Protocol


class HealthView(Protocol):
    """What the process lacks in order to serve."""

    def missing(self) -> tuple[str, ...]:
        """What is not ready now, each in plain words; empty when everything is."""
