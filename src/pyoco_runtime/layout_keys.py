"""The tables and keys of supervisor.toml, and what is right for each."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pyoco_runtime.core.spec import Restart, Strategy
from pyoco_runtime.toml_file import Path, TomlFile
from pyoco_runtime.wording import nearest, not_one_of, quoted

ROOT = "runtime"

Wrong = Callable[[object], str | None]
"""Says what is wrong with a value, or None."""

Keys = Mapping[str, "Wrong | Keys"]
"""The keys of a table; a mapping in the place of a check is a table in the table."""


@frozen
class Known:
    """The names that a supervisor.toml may use; the code that has the actors hands them in."""

    actors: frozenset[str]
    supervisors: frozenset[str]
    settings: frozenset[str] | None = None
    """None leaves the names in [settings] unchecked."""


def problems(file: TomlFile, known: Known) -> Iterator[str]:
    """Everything that is wrong with the file's tables, keys and values, each with its place."""
    for name, table in file.data.items():
        path = (name,)
        if name not in ("settings", "supervisors", "actors"):
            wrong = not_one_of(name, "a table of this file", ["settings", "supervisors", "actors"])
            yield f"{file.place(path)}: {wrong}"
        elif not isinstance(table, dict):
            yield f"{file.place(path)}: {quoted(table)} is not a table; write [{name}] on a line of its own"
        elif name == "settings":
            yield from _setting_problems(file, known)
        else:
            yield from _named_problems(file, name, known)


def _setting_problems(file: TomlFile, known: Known) -> Iterator[str]:
    for name in file.data["settings"]:
        if known.settings is None or name in known.settings:
            continue
        # The environment's spelling is the likeliest slip: PYOCO_PORT for port.
        near = nearest(name.lower().removeprefix("pyoco_"), known.settings)
        hint = f"; did you mean {quoted(near)}?" if near else "; docs/reference/settings.md lists them all"
        yield f"{file.place(('settings', name))}: {quoted(name)} is not a setting{hint}"


def _named_problems(file: TomlFile, kind: str, known: Known) -> Iterator[str]:
    there_are = known.actors if kind == "actors" else known.supervisors | {ROOT}
    for name, table in file.data[kind].items():
        path = (kind, name)
        if name not in there_are:
            yield f"{file.place(path)}: {_stranger(kind, name, there_are, known)}"
        elif not isinstance(table, dict):
            yield f"{file.place(path)}: {quoted(table)} is not a table; write [{kind}.{name}] with keys below it"
        else:
            yield from _key_problems(file, path, table, _keys_of(kind, name))


def _stranger(kind: str, name: str, there_are: frozenset[str], known: Known) -> str:
    if kind == "actors" and name in known.supervisors | {ROOT}:
        return f"{quoted(name)} is a supervisor; write [supervisors.{name}]"
    if kind == "supervisors" and name in known.actors:
        return f"{quoted(name)} is an actor; write [actors.{name}]"
    return not_one_of(name, "an actor" if kind == "actors" else "a supervisor", sorted(there_are))


def _key_problems(file: TomlFile, path: Path, table: Mapping[str, Any], keys: Keys) -> Iterator[str]:
    for key, value in table.items():
        here = (*path, key)
        check = keys.get(key)
        if check is None:
            yield f"{file.place(here)}: {not_one_of(key, 'a key of this table', keys)}"
        elif callable(check):
            if wrong := check(value):
                yield f"{file.place(here)}: {wrong}"
        elif isinstance(value, dict):
            yield from _key_problems(file, here, value, check)
        else:
            yield f"{file.place(here)}: {quoted(value)} is not a table; write {{ {' = ..., '.join(check)} = ... }}"


def _word(words: type[enum.StrEnum], called: str) -> Wrong:
    def wrong(found: object) -> str | None:
        return None if found in list(words) else not_one_of(found, called, words)

    return wrong


def _number(right: str, fits: Callable[[float], bool]) -> Wrong:
    def wrong(found: object) -> str | None:
        # bool is a kind of int for Python and for nobody else.
        if isinstance(found, int | float) and not isinstance(found, bool) and _finite(found) and fits(found):
            return None
        return f"{quoted(found)} is not {right}"

    return wrong


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float can hold
        return False


def _count(found: object) -> str | None:
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return None
    return f"{quoted(found)} is not a whole number, 0 or more"


def _names(found: object) -> str | None:
    if isinstance(found, list) and all(isinstance(name, str) for name in found):
        return None
    return f'{quoted(found)} is not a list of names; write ["one", "other"]'


def _not_for_the_root(_: object) -> str | None:
    return f"{ROOT} is the root: nobody is above it who could restart it; remove this key"


def _keys_of(kind: str, name: str) -> Keys:
    if kind == "actors":
        return _ACTOR_KEYS
    return _ROOT_KEYS if name == ROOT else _SUPERVISOR_KEYS


_AT_LEAST_ZERO = _number("a number of seconds, 0 or more", lambda sec: sec >= 0)
_MORE_THAN_ZERO = _number("a number of seconds, more than 0", lambda sec: sec > 0)
_BACKOFF_KEYS: Keys = {
    "initial_sec": _AT_LEAST_ZERO,
    "factor": _number("a number, 1 or more", lambda factor: factor >= 1),
    "max_sec": _AT_LEAST_ZERO,
    "jitter": _number("a number from 0 to 1", lambda share: 0 <= share <= 1),
}
_PARENT_KEYS: Keys = {"restart": _word(Restart, "a restart word"), "backoff": _BACKOFF_KEYS}
_ACTOR_KEYS: Keys = {
    **_PARENT_KEYS,
    "start_timeout_sec": _MORE_THAN_ZERO,
    "shutdown_sec": _AT_LEAST_ZERO,
}
_SUPERVISOR_KEYS: Keys = {
    "strategy": _word(Strategy, "a strategy"),
    "children": _names,
    "max_restarts": _count,
    "within_sec": _MORE_THAN_ZERO,
    "kill_sec": _AT_LEAST_ZERO,
    **_PARENT_KEYS,
}
_ROOT_KEYS: Keys = {**_SUPERVISOR_KEYS, "restart": _not_for_the_root, "backoff": _not_for_the_root}
