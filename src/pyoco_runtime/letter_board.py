"""All dead letters as this process knows them."""

from __future__ import annotations

from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.letter_index import MAX_LETTERS, LetterIndex
from pyoco_runtime.model.roll_call import Behind


class LetterBoard:
    """Belongs to the tree; the letter index actor tells it what the feed says, and whoever finds one gone drops it."""

    def __init__(self, max_letters: int = MAX_LETTERS, max_age_sec: float | None = None) -> None:
        """`max_age_sec` is how long the stream keeps a letter."""
        self.index = LetterIndex(max_letters, max_age_sec)

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self.index.behind

    # -- for the letter index actor ------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A feed was opened: all that is stored is told, and then every new one."""
        self.index.begin_load()

    def end_load(self, now: float) -> None:
        """All that was stored has been told."""
        self.index.end_load()
        self.index.expire(now)

    def lose(self, why: str, at: float) -> None:
        """The feed is lost."""
        self.index.lose(why, at)

    def put(self, seq: int, letter: DeadLetter, now: float) -> None:
        """This is stored; what has grown too old meanwhile is forgotten."""
        self.index.put(seq, letter)
        self.index.expire(now)
