"""Options, environment, .env and supervisor.toml, in this order, into frozen and checked settings."""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen
from dotenv import dotenv_values

from pyoco_runtime.errors import InvalidLayout, InvalidSetting
from pyoco_runtime.layout import SHIPPED, Known, Layout, RawSetting, parse
from pyoco_runtime.setting_kinds import from_toml
from pyoco_runtime.settings_table import (
    SETTINGS,
    AuthMode,
    Isolation,
    Lang,
    LogFormat,
    LogLevel,
    NatsHere,
    Role,
    Setting,
    Settings,
)
from pyoco_runtime.wording import nearest, quoted

__all__ = [
    "SETTINGS",
    "AuthMode",
    "Isolation",
    "Lang",
    "Loaded",
    "LogFormat",
    "LogLevel",
    "NatsHere",
    "Role",
    "Setting",
    "Settings",
    "load",
    "shown",
]

_BY_NAME: Mapping[str, Setting] = MappingProxyType({each.name: each for each in SETTINGS})


@frozen
class Loaded:
    """The settings, where each of them came from, and the layout that was read on the way."""

    settings: Settings
    sources: Mapping[str, str]
    """By field name, in words: "default", "environment PYOCO_PORT", "option --port" and so on."""
    layout: Layout
    config_path: str
    """The supervisor.toml that was read, or the words for the shipped one."""


@frozen
class _Given:
    """A value that somebody wrote, not yet read."""

    raw: str | RawSetting = field(repr=False)  # it may be a secret
    source: str
    place: str
    """The source as an error names it: with the line, where there is one."""


_Values = Mapping[str, _Given]


def load(options: Mapping[str, str], environ: Mapping[str, str], cwd: Path, known: Known) -> Loaded:
    """Read all sources; raises InvalidSetting or InvalidLayout that names what is wrong and where it stands."""
    process = _from_environment(environ, "environment", list(SETTINGS))
    outer = ChainMap(dict(_from_options(options)), dict(process), dict(_from_dotenv(process, cwd)))
    layout, config_path = _layout(outer, cwd, known)
    given = ChainMap(*outer.maps, dict(_from_layout(layout)))
    values = {name: _value(_BY_NAME[name], value) for name, value in given.items()}
    sources = {name: given[name].source if name in given else "default" for name in _BY_NAME}
    return Loaded(Settings(**values), MappingProxyType(sources), layout, config_path)


def shown(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Every setting as (variable, value, source), fit for any eye: secrets and passwords are hidden."""
    return [
        (each.env, _shown_value(each, getattr(loaded.settings, each.name)), loaded.sources[each.name])
        for each in SETTINGS
    ]


def _shown_value(setting: Setting, value: object) -> str:
    if value is None:
        return "not set"
    return "set" if setting.secret else setting.kind.show(value)


def _from_options(options: Mapping[str, str]) -> _Values:
    for name in options:
        if name not in _BY_NAME or not _BY_NAME[name].in_dotenv:
            near = nearest(name, _BY_NAME)
            hint = f"; did you mean {quoted(near)}?" if near and near != name else ""
            raise InvalidSetting(f"{quoted(name)} is not a setting that can be given as an option{hint}")
    sources = {name: f"option {_BY_NAME[name].option}" for name in options}
    return {name: _Given(raw, sources[name], sources[name]) for name, raw in options.items()}


def _from_environment(variables: Mapping[str, str | None], called: str, which: list[Setting]) -> _Values:
    given = {}
    for each in which:
        raw = variables.get(each.env)
        if raw and raw.strip():  # an empty variable is one that is not set
            given[each.name] = _Given(raw, f"{called} {each.env}", f"{called} {each.env}")
    return given


def _from_dotenv(process: _Values, cwd: Path) -> _Values:
    if not _early(process, "load_dotenv"):
        return {}
    path: Path = _early(process, "env_file")
    try:
        text = _text(path, cwd)
    except (FileNotFoundError, IsADirectoryError):  # .env is also a usual name for a virtual environment
        if "env_file" not in process:
            return {}
        raise InvalidSetting(f"{process['env_file'].place}: there is no file {quoted(str(path))}") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidSetting(f"PYOCO_ENV_FILE: {_unreadable(path, error)}") from None
    # No ${...}: the peer's .env files mean what they say, and a pepper may hold such signs.
    variables = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return _from_environment(variables, str(path), [each for each in SETTINGS if each.in_dotenv])


def _from_layout(layout: Layout) -> _Values:
    given = {}
    for name, raw in layout.settings.items():
        setting = _BY_NAME[name]
        source = f"{raw.source} [settings] {name}"
        line = f", line {raw.line}," if raw.line else ""
        place = f"{raw.source}{line} [settings] {name}"
        if not setting.in_file:
            raise InvalidLayout(f"{place}: this is needed before the file is read; set {setting.env} instead")
        given[name] = _Given(raw, source, place)
    return given


def _layout(outer: _Values, cwd: Path, known: Known) -> tuple[Layout, str]:
    known = evolve(known, settings=frozenset(_BY_NAME))
    named = outer.get("config")
    path = Path("supervisor.toml") if named is None else _value(_BY_NAME["config"], named)
    try:
        text = _text(path, cwd)
    except FileNotFoundError:
        if named is None:
            return parse("", source=SHIPPED, known=known), SHIPPED
        raise InvalidSetting(f"{_where('config', named)}: there is no file {quoted(str(path))}") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidSetting(f"PYOCO_CONFIG: {_unreadable(path, error)}") from None
    return parse(text, source=str(path), known=known), str(path)


def _text(path: Path, cwd: Path) -> str:
    # utf-8-sig: some editors begin every file with a byte order mark.
    return (cwd / path.expanduser()).read_text(encoding="utf-8-sig")


def _unreadable(path: Path, error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            why = "it is not UTF-8 text"
        case OSError():
            why = error.strerror or type(error).__name__
        case _:
            why = "there is no such path"  # a home directory that does not exist, for one
    return f"cannot read {quoted(str(path))}: {why}"


def _early(process: _Values, name: str) -> Any:
    given = process.get(name)
    return getattr(Settings(), name) if given is None else _value(_BY_NAME[name], given)


def _value(setting: Setting, given: _Given) -> Any:
    raw = given.raw
    found = raw.value if isinstance(raw, RawSetting) else raw
    try:
        return setting.kind.read(raw) if isinstance(raw, str) else from_toml(setting.kind, found)
    except ValueError:
        wrong = f"the value is not {setting.kind.right}" if setting.secret else setting.kind.explain(found)
        # None: the cause could repeat a password that `explain` hides.
        raise InvalidSetting(f"{_where(setting.name, given)}: {wrong}") from None


def _where(name: str, given: _Given) -> str:
    env = _BY_NAME[name].env
    return given.place if env in given.place else f"{given.place} ({env})"
