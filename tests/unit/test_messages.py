"""The message catalogue: both languages have the same messages, and every error has one."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyoco_runtime.errors
from pyoco_runtime.errors import PyocoError
from pyoco_runtime.messages import Language, language, text
from pyoco_runtime.messages.catalogue import LANGUAGES, messages, ui_texts, ui_version

SOURCES = Path(pyoco_runtime.errors.__file__).parent
SCRIPTS = SOURCES / "gateway" / "static" / "js"
SAME_WORD = re.compile(r"[\W\d_]*|[A-Za-z0-9 .:/_{}%+·—–-]*")
"""Names, numbers and signs are the same in every language."""


def placeholders(message: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(message) if name is not None}


def test_both_languages_have_the_same_messages() -> None:
    """A message that one language lacks would be a crash for its users."""
    assert messages("en").keys() == messages("ja").keys()


def test_both_languages_have_the_same_placeholders() -> None:
    """A value that is given is told in both."""
    for msg_id, message in messages("en").items():
        assert placeholders(message) == placeholders(messages("ja")[msg_id]), msg_id


def test_every_id_has_its_form() -> None:
    """MSG-PYOCO- and four digits, in ascending order within errors, and no text is empty."""
    for lang in LANGUAGES:
        for msg_id, message in messages(lang).items():
            assert re.fullmatch(r"MSG-PYOCO-\d{4}", msg_id)
            assert message.strip()


def test_japanese_is_japanese() -> None:
    """No text was forgotten in English, apart from those that are all names and values."""
    for msg_id, message in messages("ja").items():
        assert re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", message), msg_id


def error_classes(root: type[PyocoError] = PyocoError) -> Iterator[type[PyocoError]]:
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_error_has_a_text(lang: Language) -> None:
    """Those of errors.py, and those of the contract that are only logged."""
    numbers = {error.number for error in error_classes() if error.number is not None} | set(range(1, 25))
    assert {number for number in numbers if f"MSG-PYOCO-{number:04d}" not in messages(lang)} == set()


def test_the_texts_of_errors_have_no_placeholders() -> None:
    """Whoever has only the id can show the text."""
    for msg_id, message in messages("en").items():
        if int(msg_id[-4:]) < 100:
            assert placeholders(message) == set(), msg_id


def test_every_message_that_the_client_says_exists_and_is_used() -> None:
    """The numbers in cli/client/ are those of the catalogue from 0100 to 0199."""
    source = "\n".join(path.read_text() for path in (SOURCES / "cli" / "client").glob("*.py"))
    there = {int(msg_id[-4:]) for msg_id in messages("en")}
    mine = {number for number in there if 100 <= number < 200}
    named = {int(found) for found in re.findall(r"(?<![\d.\w])(1\d\d)(?![\d\w%])", source)}
    named |= {int(found) for found in re.findall(r"MSG-PYOCO-(\d{4})", source)}
    assert mine - named == set()
    said = {int(found) for found in re.findall(r"(?:say|note)\((\d+)", source)}
    assert said - there == set()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "java"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": ""}, "ja"),
    ],
)
def test_the_locale_chooses_the_language(environ: dict[str, str], expected: str) -> None:
    """LC_ALL before LC_MESSAGES before LANG, and an empty one counts as not set."""
    assert language(environ) == expected


def test_values_are_filled_in_and_never_read_as_placeholders() -> None:
    """A value with braces comes from others."""
    assert text("MSG-PYOCO-0120", "en", path="{x}", reason="gone") == "{x} cannot be read: gone"


def test_a_missing_value_is_an_error() -> None:
    """A message with a hole in it is a defect of ours."""
    with pytest.raises(KeyError):
        text("MSG-PYOCO-0120", "en", path="x")


# -- the dashboard ----------------------------------------------------------------------------------------------------


def used_in_scripts() -> Iterator[tuple[str, str]]:
    """Every key that a script asks for, and where; of a key that is put together, its beginning with a `*`."""
    for path in sorted(SCRIPTS.rglob("*.js")):
        for quote, key in re.findall(r"""\bt\(\s*(["'`])(.*?)\1""", path.read_text(encoding="utf-8")):
            yield (key.partition("${")[0] + "*" if quote == "`" and "${" in key else key), path.name


def test_every_text_of_the_dashboard_is_there_in_both_languages() -> None:
    """With the same placeholders, and neither of them empty."""
    english, japanese = ui_texts("en", ui_version()), ui_texts("ja", ui_version())
    assert english.keys() == japanese.keys()
    for key, message in english.items():
        assert message.strip(), key
        assert japanese[key].strip(), key
        assert placeholders(message) == placeholders(japanese[key]), key


def test_the_dashboard_is_japanese_in_japanese() -> None:
    """No text was forgotten in English, apart from those that are all names, numbers and signs."""
    for key, message in ui_texts("ja", ui_version()).items():
        if not SAME_WORD.fullmatch(message):
            assert re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", message), key


def test_every_text_that_a_script_asks_for_exists() -> None:
    """A key that does not would be shown as it is."""
    there = {**messages("en"), **ui_texts("en", ui_version())}
    for key, where in used_in_scripts():
        if key.endswith("*"):
            assert any(each.startswith(key[:-1]) for each in there), f"{where}: {key}"
        else:
            assert key in there, f"{where}: {key}"
