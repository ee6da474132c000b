"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent  # not ROOT/.venv/bin: the tests run on several interpreters
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@frozen
class Step:
    """A command of a page, and what the page says that it prints."""

    command: str
    sample: str = ""
    fails: bool = False
    """The page says that it ends with an error."""


def blocks(page: Path, *kinds: str) -> Iterator[tuple[int, str]]:
    """The fenced blocks of these kinds, with the line that each begins on."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        if found["kind"] in kinds:
            yield text.count("\n", 0, found.start()) + 1, _unindented(found)


def steps(page: Path) -> list[Step]:
    """Every command of the page that is meant to be run, in order. A `text` block that follows is what it prints."""
    text = page.read_text()
    found: list[Step] = []
    end = 0
    for block in FENCE.finditer(text):
        follows = not text[end : block.start()].strip()
        end = block.end()
        if block["kind"] in ("console", "sh"):
            found += [Step(command) for command in _commands(_unindented(block))]
        elif block["kind"] == "text" and follows and found:
            found[-1] = Step(found[-1].command, _unindented(block))
    return found


def commands(page: Path) -> list[str]:
    """The commands alone."""
    return [step.command for step in steps(page)]


def called(page: Path) -> str:
    """The page as test ids and messages name it."""
    return str(page.relative_to(ROOT))


def _unindented(block: re.Match[str]) -> str:
    return re.sub(f"(?m)^{block['indent']}", "", block["text"])


def _commands(text: str) -> Iterator[str]:
    """A line that ends with a backslash goes on in the next one."""
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            yield re.sub(r"  +", " ", line.removeprefix("$ "))
