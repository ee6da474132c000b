"""The history of the wheels: who uploaded or deleted what, and when."""

from __future__ import annotations

import enum
import json
from typing import Any

import cattrs
from attrs import asdict, field, frozen


class WheelAction(enum.StrEnum):
    """What was done."""

    UPLOAD = "upload"
    DELETE = "delete"


@frozen(kw_only=True)
class Actor:
    """Whose key was used; nothing without authentication."""

    tenant_id: str | None = None
    api_key_id: str | None = None


@frozen(kw_only=True)
class Source:
    """Where the request came from, in its own words."""

    remote_addr: str | None = None
    x_forwarded_for: str | None = None
    x_real_ip: str | None = None
    user_agent: str | None = None
    host: str | None = None
    scheme: str | None = None


@frozen
class Caller:
    """Who asks for something to be done."""

    actor: Actor = Actor()
    source: Source = Source()


@frozen(kw_only=True)
class WheelEvent:
    """One entry of the history."""

    event_id: str
    occurred_at: float
    action: WheelAction
    wheel_name: str
    tags: tuple[str, ...] = ()
    size_bytes: int | None = None
    sha256_hex: str | None = None
    replace: bool | None = None
    actor: Actor = field(factory=Actor)
    source: Source = field(factory=Source)

    @property
    def key(self) -> str:
        """Its place in the bucket: keys sort by time."""
        return f"{int(self.occurred_at * 1000):013d}_{self.event_id}"

    @property
    def order(self) -> tuple[float, str]:
        """How events are sorted."""
        return (self.occurred_at, self.event_id)


@frozen
class HistoryQuery:
    """Which events, and how many of the newest at most."""

    limit: int = 100
    wheel_name: str | None = None
    action: WheelAction | None = None

    def wants(self, event: WheelEvent) -> bool:
        """Whether it is one of them."""
        return self.wheel_name in (None, event.wheel_name) and self.action in (None, event.action)


_converter = cattrs.Converter()


def wheel_event_to(event: WheelEvent) -> bytes:
    """The stored value."""
    return json.dumps(asdict(event), separators=(",", ":")).encode()


def wheel_event_from(data: bytes) -> WheelEvent | None:
    """Read a stored value; None if it is none."""
    try:
        return _converter.structure(_without_nothing(json.loads(data)), WheelEvent)
    except (cattrs.BaseValidationError, TypeError, ValueError, RecursionError, AttributeError):
        return None


def _without_nothing(found: Any) -> dict[str, Any]:
    """A null where we have a default is the default."""
    return {name: value for name, value in found.items() if value is not None}
