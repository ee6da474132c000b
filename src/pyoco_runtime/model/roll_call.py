"""How what we hold in memory is brought up to date with what is stored."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen


@frozen
class Behind:
    """What we hold may be old, and why."""

    why: str
    since: float | None
    """A timestamp; None if it has never been up to date."""


class RollCall:
    """After each opening of a feed everything is told once; whoever is not mentioned is gone."""

    def __init__(self, subject: str) -> None:
        """`subject` is what is held, in the plural, for the operator."""
        self._subject = subject
        self._missing: set[str] | None = None
        self._heard = 0
        self._why: str | None = f"no {subject} have been read yet"
        self._since: float | None = None

    @property
    def behind(self) -> Behind | None:
        """Why what we hold may be old; None while it is as new as the feed."""
        if self._missing is not None:
            return Behind(f"reading the stored {self._subject}: {self._heard:,} so far", self._since)
        return None if self._why is None else Behind(self._why, self._since)

    @property
    def is_on(self) -> bool:
        """Not everything has been told yet."""
        return self._missing is not None

    def lose(self, why: str, at: float) -> None:
        """Nothing more is heard from now on. What was missing may be there after all."""
        if self.behind is None:
            self._since = at
        self._missing = None
        self._why = why

    def begin(self, known: Iterable[str]) -> None:
        """From now on everything that is stored is told."""
        self._missing = set(known)
        self._heard = 0

    def mention(self, key: str) -> bool:
        """It was told; whether it was known before, and this is the first time in this call."""
        if self._missing is None:
            return False
        self._heard += 1
        if key not in self._missing:
            return False
        self._missing.discard(key)
        return True

    def end(self) -> frozenset[str]:
        """Everything has been told: those that were known before and are gone."""
        gone = frozenset(self._missing or ())
        self._missing = None
        self._why = None
        return gone
