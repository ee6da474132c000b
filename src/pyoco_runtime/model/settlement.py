"""What is said to the queue about a delivery."""

from __future__ import annotations

from attrs import frozen


@frozen
class Ack:
    """It is done, and everything about it is stored."""


@frozen
class Nak:
    """Deliver it again, after a pause."""

    delay_sec: float = 0.0


@frozen
class Term:
    """Never deliver it again."""

    reason: str


Settlement = Ack | Nak | Term

HICCUP = Nak(2.0)
"""After a NATS hiccup: soon, and not at once."""
GIVE_BACK = Nak(0.0)
"""Somebody else may have it now."""
