"""A TOML text that knows its own name and on which line each of its keys stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from pyoco_runtime.errors import InvalidLayout
from pyoco_runtime.wording import quoted

Path = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_KEY})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY})\s*=")
_AT = re.compile(r" \((?:at line (\d+), column (\d+)|at end of document)\)$")


@frozen
class TomlFile:
    """What a TOML file says, and where it says it."""

    source: str
    text: str = field(repr=False)  # it may hold a secret
    data: Mapping[str, Any] = field(repr=False)

    def has(self, path: Path) -> bool:
        """Whether this file itself holds the key or table at `path`."""
        here: object = self.data
        for part in path:
            if not isinstance(here, dict) or part not in here:
                return False
            here = here[part]
        return True

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of what stands nearest to it: its table, its inline table, its first key."""
        best, at = 0, None
        for written, number in _keys(self.text):
            if written == path:
                return number
            common = _common(written, path)
            if common > best:
                best, at = common, number
        return at

    def place(self, path: Path) -> str:
        """File, line and key path, as every message about this file begins."""
        line = self.line(path)
        return ", ".join([self.source, *([f"line {line}"] if line else []), _dotted(path)])


def read(text: str, source: str) -> TomlFile:
    """Parse the text; raises InvalidLayout with line and column if it is not TOML."""
    try:
        return TomlFile(source, text, tomllib.loads(text))
    except RecursionError:
        raise InvalidLayout(f"{source}: not readable as TOML: the brackets nest too deep") from None
    except ValueError as error:
        # Also what tomllib does not turn into its own error, such as a number of 5000 digits.
        raise InvalidLayout(_syntax_message(source, text, str(error))) from None


def _syntax_message(source: str, text: str, message: str) -> str:
    at = _AT.search(message)
    if at is None:
        return f"{source}: not readable as TOML: {message}"
    end = text.count("\n") + 1
    where = f"line {at[1]}, column {at[2]}" if at[1] else f"line {end} (the end)"
    return f"{source}, {where}: not readable as TOML: {message[: at.start()]}"


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Every table header and key with its full path and line number."""
    table: Path = ()
    inside = False
    for number, line in enumerate(text.split("\n"), start=1):
        was_inside = inside
        if (line.count('"""') + line.count("'''")) % 2:
            inside = not inside
        if was_inside:
            continue  # the lines of a long string may look like keys
        if header := _HEADER.match(line):
            table = _split(header[1])
            yield table, number
        elif assignment := _ASSIGNMENT.match(line):
            yield table + _split(assignment[1]), number


def _split(key: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


def _dotted(path: Path) -> str:
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else quoted(part) for part in path)


def _common(one: Path, other: Path) -> int:
    shared = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared
