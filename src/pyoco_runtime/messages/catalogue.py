"""The message catalogue: one file a language, and which language the user wants."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # POSIX: the first that is set and not empty decides


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
