"""The tasks of flow.yaml beside this file: plain functions, which take a moment and print what they do."""

from __future__ import annotations

import time
from collections import Counter


def read(text: str, pause_sec: float = 0.0) -> list[str]:
    """Split a text into its words."""
    time.sleep(pause_sec)
    words = text.lower().replace(",", "").replace(".", "").split()
    print(f"read {len(words)} words")
    return words


def count(words: list[str], pause_sec: float = 0.0) -> int:
    """How many different words there are."""
    time.sleep(pause_sec)
    print(f"{len(set(words))} of {len(words)} words are different")
    return len(set(words))


def longest(words: list[str], pause_sec: float = 0.0) -> str:
    """The longest word."""
    time.sleep(pause_sec)
    found = max(words, key=len)
    print(f"the longest word is {found!r}")
    return found


def commonest(words: list[str], pause_sec: float = 0.0) -> str:
    """The word that comes most often."""
    time.sleep(pause_sec)
    [(found, times)] = Counter(words).most_common(1)
    print(f"{found!r} comes {times} times")
    return found


def join(different: int, longest: str, commonest: str, pause_sec: float = 0.0) -> str:
    """One sentence of what three tasks have found."""
    time.sleep(pause_sec)
    sentence = f"{different} different words; the longest is {longest}, the commonest is {commonest}"
    print(sentence)
    return sentence


def greet(name: str, sentence: str, pause_sec: float = 0.0) -> str:
    """Say it to somebody."""
    time.sleep(pause_sec)
    print(f"Hello, {name}! {sentence}.")
    return f"Hello, {name}! {sentence}."
