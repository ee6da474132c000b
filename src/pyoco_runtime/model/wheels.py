"""Wheels: what the store says about one, and which of them a worker installs."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class WheelInfo:
    """A wheel in the store."""

    name: str
    nuid: str
    """Changes with every upload."""
    size_bytes: int
    sha256_hex: str | None = None
    tags: tuple[str, ...] = ()
    """Which workers it is for; empty is for all."""
    modified: float | None = None
