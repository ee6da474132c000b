"""Tasks about words. A worker that has this package offers them to every flow.yaml, by their names."""

# ruff: noqa: TID251 - user code imports pyoco
from __future__ import annotations

from pyoco.discovery.plugins import PluginRegistry


def split(text: str) -> list[str]:
    """The words of a text."""
    words = text.split()
    print(f"found {len(words)} words")
    return words


def count(words: list[str]) -> dict[str, int]:
    """How often each word comes."""
    return {word: words.count(word) for word in words}


def report(counts: dict[str, int]) -> str:
    """A sentence about it."""
    sentence = f"{len(counts)} different words"
    print(sentence)
    return sentence


def register(registry: PluginRegistry) -> None:
    """Called by pyoco, because pyproject.toml names it as an entry point."""
    registry.task(split, inputs={"text": "$ctx.params.text"})
    registry.task(count, inputs={"words": "$node.split.output"})
    registry.task(report, inputs={"counts": "$node.count.output"})
