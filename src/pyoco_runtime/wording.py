"""How our messages repeat what a user wrote, and what they offer instead."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

_MOST_CHARS = 80  # a message stays one readable line, whatever was pasted into the value
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def quoted(found: object) -> str:
    """The found value as its file would spell it, shortened, and without the credentials of a URL."""
    match found:
        case str():
            return _spelled(hidden(found) if "://" in found and "@" in found else found)
        case bool():
            return "true" if found else "false"
        case dict():
            return "a table"
        case list():
            return "a list"
        case int() if abs(found) >= 10**_MOST_CHARS:
            return "a very large number"  # Python refuses to print more than 4300 digits
        case _:
            return str(found)


def hidden(text: str) -> str:
    """The text with everything hidden that may be a password, however badly it is written as a URL."""
    scheme, mark, rest = text.partition("://")
    if not (mark and _SCHEME.fullmatch(scheme)):
        scheme, mark, rest = "", "", text
    if "@" in rest:
        rest = "***@" + rest.rpartition("@")[2]
    # What follows a colon is a port, or a password whose host was forgotten.
    host, colon, _ = rest.partition(":")
    return f"{scheme}{mark}{host}{':***' if colon else ''}"


def not_one_of(found: object, called: str, words: Iterable[str]) -> str:
    """Say that `found` is not such a word, which one is nearest, and which there are."""
    there_are = list(words)
    near = nearest(found, there_are) if isinstance(found, str) else None
    hint = f"; did you mean {quoted(near)}?" if near else ""
    return f"{quoted(found)} is not {called}{hint} ({', '.join(there_are) or 'there are none'})"


def nearest(found: str, words: Iterable[str]) -> str | None:
    """The word that was most likely meant, if any comes near."""
    by_lower = {word.lower(): word for word in words}
    close = difflib.get_close_matches(found[:_MOST_CHARS].lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def _spelled(text: str) -> str:
    short = text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "..."
    return json.dumps(short, ensure_ascii=not short.isprintable())
