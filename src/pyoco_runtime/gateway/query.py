"""The query string of a request, checked field by field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pyoco_runtime.errors import InvalidRequest, PyocoError

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off", ""})
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


class Query:
    """What was asked for; unknown fields are ignored, and of a repeated one the last counts."""

    def __init__(
        self, fields: Mapping[str, list[str]], error: type[PyocoError] = InvalidRequest, broken: str = ""
    ) -> None:
        """`broken` says why there are no fields; whoever asks for one hears it."""
        self._fields = fields
        self._error = error
        self._broken = broken

    def wrong_is(self, error: type[PyocoError]) -> Query:
        """The same; what is wrong in it raises this error."""
        return Query(self._fields, error, self._broken)

    def text(self, name: str) -> str | None:
        """The text, None if it is absent or empty."""
        found = self._found(name)
        return found[-1] or None if found else None

    def texts(self, name: str) -> frozenset[str]:
        """All texts of a field that may be repeated."""
        return frozenset(self._found(name))

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        """One of these, in any case; None if it is absent."""
        found = self.text(name)
        if found is None:
            return None
        for choice in choices:
            if found.strip().upper() == choice.upper():
                return choice
        raise self._error(f"{name}: must be one of {', '.join(choices)}, not {found[:100]!r}")

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number in a range."""
        found = self.text(name)
        if found is None:
            return default
        number = int(found) if _WHOLE.fullmatch(found) else None
        if number is None or not low <= number <= high:
            raise self._error(f"{name}: must be a whole number from {low} to {high}, not {found[:100]!r}")
        return number

    def number(self, name: str) -> float | None:
        """A finite number; None if it is absent."""
        found = self.text(name)
        if found is None:
            return None
        try:
            number = float(found)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self._error(f"{name}: must be a number, not {found[:100]!r}")
        return number

    def flag(self, name: str) -> bool:
        """true or false, which is the default."""
        found = (self.text(name) or "").strip().lower()
        if found in _TRUE:
            return True
        if found in _FALSE:
            return False
        raise self._error(f"{name}: must be true or false, not {found[:100]!r}")

    def _found(self, name: str) -> list[str]:
        if self._broken:
            raise self._error(self._broken)
        return self._fields.get(name, [])
