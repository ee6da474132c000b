"""The message catalogue: one file a language, one a view of the dashboard, and which language the user wants."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # POSIX: the first that is set and not empty decides
_UI = Path(__file__).parent / "ui"


def text(msg_id: str, lang: Language, **values: object) -> str:
    """The message with its placeholders filled. Raises KeyError for an id or a value that is missing."""
    return messages(lang)[msg_id].format_map(values)


def language(environ: Mapping[str, str] = os.environ) -> Language:
    """The language that the locale asks for; English for all that we do not speak."""
    wanted = next((environ[name] for name in _LOCALE if environ.get(name)), "")
    return "ja" if wanted.lower().partition("_")[0].partition(".")[0] in ("ja", "japanese") else "en"


@cache
def messages(lang: Language) -> Mapping[str, str]:
    """Every message of this language, by its MSG id."""
    # opened as bytes: TOML is UTF-8, whatever the locale says
    found: dict[str, str] = tomllib.loads(files(__package__).joinpath(f"{lang}.toml").read_bytes().decode())
    return found


def ui_version() -> tuple[int, ...]:
    """Changes when somebody changes a text of the dashboard: whoever works on them sees it by a reload."""
    return tuple(view.stat().st_mtime_ns for view in sorted(_UI.glob("*.toml")))


@lru_cache(maxsize=len(LANGUAGES))
def ui_texts(lang: Language, version: tuple[int, ...] = ()) -> Mapping[str, str]:
    """Every text of the dashboard in this language, by its key: ui.<view>.<name>."""
    found: dict[str, str] = {}
    for view in sorted(_UI.glob("*.toml")):
        _gather(tomllib.loads(view.read_text(encoding="utf-8")), f"ui.{view.stem}", lang, found)
    return found


def _gather(table: Mapping[str, Any], key: str, lang: Language, into: dict[str, str]) -> None:
    """A table with the languages in it is a text; any other holds more of them."""
    for name, inner in table.items():
        if lang in inner:
            into[f"{key}.{name}"] = inner[lang]
        else:
            _gather(inner, f"{key}.{name}", lang, into)
