"""Dead letters that are not larger than they may be."""

from __future__ import annotations

from attrs import evolve

from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.wire import letter_to

LETTER_LIMIT = 512 * 1024  # bytes; a server takes 1 MiB by default, and answers with a third more
ERROR_LIMIT = 4096  # characters of the error of a letter that is too large even without its job


def letter_within(letter: DeadLetter, limit: int = LETTER_LIMIT) -> bytes:
    """The message to store; if it is too large, without the job, and then with a short error."""
    data = letter_to(letter)
    if len(data) > limit:
        letter = evolve(letter, job=None)
        data = letter_to(letter)
    if len(data) > limit and letter.error is not None:
        data = letter_to(evolve(letter, error=letter.error[:ERROR_LIMIT]))
    return data
