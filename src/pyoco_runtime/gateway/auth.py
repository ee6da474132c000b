"""Who may ask for what: the policy of the HTTP door, without a word of HTTP frameworks."""

from __future__ import annotations

from collections.abc import Iterable

from pyoco_runtime.errors import ApiKeyRequired, InvalidApiKey
from pyoco_runtime.key_ring import KeyRing
from pyoco_runtime.model.api_key import Principal

Headers = Iterable[tuple[bytes, bytes]]
"""Names, in lower case, and values as they came; what ASGI has in `scope["headers"]`."""

_OPEN = frozenset({"/", "/health", "/ready"})
_STATIC = "/static/"


def is_open(path: str) -> bool:
    """Whether everybody may ask for this path, decoded but otherwise as it came; what is odd is not open."""
    return path in _OPEN or (path.startswith(_STATIC) and ".." not in path.split("/"))


class Gate:
    """Lets requests in. Without a ring (auth mode none) everybody may do everything."""

    def __init__(self, ring: KeyRing | None, header: str) -> None:
        self._ring = ring
        self.header = header
        self._header = header.lower().encode("latin-1")

    @property
    def is_guarded(self) -> bool:
        """Whether requests need an API key."""
        return self._ring is not None

    async def admit(self, headers: Headers, path: str) -> Principal | None:
        """Who asks; None if nobody has to say. Raises ApiKeyRequired, InvalidApiKey, NatsUnavailable.

        A key that is known needs no waiting: it does not suspend.
        """
        ring = self._ring
        if ring is None or is_open(path):
            return None
        presented = self._presented(headers)
        return ring.known(presented) or await ring.check(presented)

    def _presented(self, headers: Headers) -> str:
        found = [value for name, value in headers if name == self._header]
        if not found:
            raise ApiKeyRequired
        if len(found) > 1:
            raise InvalidApiKey  # whoever stands between may look at one of them and we at the other
        return found[0].decode("latin-1")
