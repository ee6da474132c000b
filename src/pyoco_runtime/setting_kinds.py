"""The kinds of value that a setting can have: how each is read from text, shown, and explained when it is wrong."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from attrs import frozen

from pyoco_runtime.wording import hidden, not_one_of, quoted

T = TypeVar("T")
Word = TypeVar("Word", bound=enum.StrEnum)

MOST_SEC = 1_000_000_000.0  # 31 years; as nanoseconds still well within the 64 bits of JetStream
MOST_COUNT = 1_000_000_000
MOST_BYTES = 1_099_511_627_776  # 1 TiB, far beyond what one stream or wheel should be

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_HOST = re.compile(r"[A-Za-z0-9_.:%-]+")
_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_SCHEMES = ("nats", "tls", "ws", "wss")


@frozen
class Kind(Generic[T]):
    """One kind of value."""

    right: str
    """What would be right, in words that follow "is not"."""
    read: Callable[[str], T]
    """Text to value; raises ValueError."""
    native: tuple[type, ...] = ()
    """The TOML types, besides a string, that it may be written as in supervisor.toml."""
    show: Callable[[T], str] = str
    wrong: Callable[[object], str] | None = None
    """What to say of a value that is not right, where more can be said than `right`."""

    def explain(self, found: object) -> str:
        """What was found and what would be right, in one line."""
        if self.wrong is not None:
            return self.wrong(found)
        return f"{quoted(found)} is not {self.right}"


def from_toml(kind: Kind[T], value: object) -> T:
    """Read a value of a TOML file; raises ValueError."""
    if isinstance(value, str):
        return kind.read(value)
    if type(value) not in kind.native:  # not isinstance: a bool is no number here
        raise ValueError
    if isinstance(value, list):
        if not all(isinstance(item, str) and "," not in item for item in value):
            raise ValueError
        return kind.read(",".join(value))
    return kind.read(str(value))


def whole(least: int, most: int = MOST_COUNT, unit: str = "") -> Kind[int]:
    """A whole number in a range."""

    def read(text: str) -> int:
        return _within(int(_matched(_WHOLE, text)), least, most)

    return Kind(f"a whole number{unit} from {least} to {most}", read, native=(int,))


def size(least: int = 1) -> Kind[int]:
    """A number of bytes."""
    return whole(least, MOST_BYTES, " of bytes")


def port() -> Kind[int]:
    """A TCP port; 0 takes any free one."""
    return whole(0, 65535)


def seconds(least: float) -> Kind[float]:
    """A length of time."""

    def read(text: str) -> float:
        return _within(float(_matched(_NUMBER, text)), least, MOST_SEC)

    right = f"a number of seconds from {least:g} to {MOST_SEC:.0f}"
    return Kind(right, read, native=(int, float), show=lambda sec: f"{sec:.12g}")


def flag() -> Kind[bool]:
    """Yes or no."""

    def read(text: str) -> bool:
        word = text.strip().lower()
        if word not in _FLAGS:
            raise ValueError
        return _FLAGS[word]

    right = "true or false (also 1, 0, yes, no, on, off)"
    return Kind(right, read, native=(bool,), show=lambda on: "true" if on else "false")


def choice(words: type[Word]) -> Kind[Word]:
    """One of a few words, in upper or lower case."""
    by_lower = {word.lower(): word for word in words}

    def read(text: str) -> Word:
        word = text.strip().lower()
        if word not in by_lower:
            raise ValueError
        return by_lower[word]

    right = "one of " + ", ".join(words)
    return Kind(right, read, wrong=lambda found: not_one_of(found, "one of the words for it", words))


def matching(pattern: str, right: str) -> Kind[str]:
    """Text of a certain form."""
    form = re.compile(pattern)
    return Kind(right, lambda text: _matched(form, text))


def token() -> Kind[str]:
    """A name that NATS takes as one token of a subject."""
    return matching(_TOKEN.pattern, "a name of letters, digits, _ and -")


def subject() -> Kind[str]:
    """The beginning of a NATS subject."""
    return matching(
        rf"{_TOKEN.pattern}(\.{_TOKEN.pattern})*", "names of letters, digits, _ and - with dots between them"
    )


def host() -> Kind[str]:
    """A host to listen on."""
    return matching(_HOST.pattern, "a host name or an IP address")


def header() -> Kind[str]:
    """The name of an HTTP header."""
    return matching(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "the name of an HTTP header")


def key() -> Kind[str]:
    """A key in a NATS KV bucket that also fits into a URL path."""
    return matching(r"[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*", "a name of letters, digits, _ - = and dots inside")


def resolver() -> Kind[str]:
    """Where a Python function is."""
    return matching(r"[^:]+:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "module:function or path/file.py:function")


def path() -> Kind[Path]:
    """A file or directory."""
    return Kind("a path", lambda text: Path(_printable(text)))


def secret() -> Kind[str]:
    """Text that is taken as it is and never shown."""

    def read(text: str) -> str:
        if not text.strip():
            raise ValueError
        return text

    return Kind("text", read)


def tokens() -> Kind[tuple[str, ...]]:
    """Names with commas between them; each counts once."""

    def read(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_matched(_TOKEN, item) for item in _items(text)))

    right = "names of letters, digits, _ and -, with commas between them"
    return Kind(right, read, native=(list,), show=",".join)


def modules() -> Kind[tuple[str, ...]]:
    """Names of Python modules with commas between them; each counts once."""

    def read(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_matched(_MODULE, item) for item in _items(text)))

    return Kind(
        "names of modules such as mypackage.tasks, with commas between them", read, native=(list,), show=",".join
    )


def urls() -> Kind[tuple[str, ...]]:
    """NATS servers with commas between them."""
    right = "a list of URLs such as nats://host:4222 (nats, tls, ws or wss), with commas between them"
    return Kind(
        right,
        lambda text: tuple(_url(item) for item in _items(text)),
        native=(list,),
        show=lambda each: ",".join(_masked(url) for url in each),
        wrong=lambda found: f"{quoted(hidden(found) if isinstance(found, str) else found)} is not {right}",
    )


def _url(text: str) -> str:
    parts = urlsplit(_printable(text))
    _matched(_HOST, parts.hostname or "")
    bare = not (parts.query or parts.fragment) and "@" not in parts.path
    path_fits = parts.path in ("", "/") or parts.scheme in ("ws", "wss")
    # The port is read only when asked for; asking raises ValueError if it is none.
    if not (bare and path_fits and parts.scheme in _SCHEMES and parts.port != 0):
        raise ValueError
    return text


def _masked(url: str) -> str:
    scheme, _, rest = url.partition("://")
    _, at, server = rest.rpartition("@")
    # The user goes too: without a colon it is an access token, and with one it may be half of it.
    return f"{scheme}://{'***' if at else ''}{at}{server}"


def _items(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError
    return items


def _within(number: T, least: T, most: T) -> T:
    if not least <= number <= most:  # type: ignore[operator]  # int or float, both of one type
        raise ValueError
    return number


def _matched(form: re.Pattern[str], text: str) -> str:
    stripped = text.strip()
    if not form.fullmatch(stripped):
        raise ValueError
    return stripped


def _printable(text: str) -> str:
    stripped = text.strip()
    if not stripped or not stripped.isprintable():  # also keeps NUL out, which no file name may hold
        raise ValueError
    return stripped
