"""All dead letters as this process knows them, and those who want to hear of them."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyoco_runtime.bells import Bell, Bells
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.letter_index import MAX_LETTERS, LetterIndex
from pyoco_runtime.model.roll_call import Behind


class LetterBoard:
    """Belongs to the tree; the letter index actor tells it what the feed says, and whoever finds one gone drops it."""

    def __init__(self, max_letters: int = MAX_LETTERS, max_age_sec: float | None = None) -> None:
        """`max_age_sec` is how long the stream keeps a letter."""
        self.index = LetterIndex(max_letters, max_age_sec)
        self._followers = Bells()

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self.index.behind

    def following(self) -> AbstractContextManager[Bell]:
        """Hear from now on that a letter or `behind` has changed. Read the index after this has begun."""
        return self._followers.following()

    def drop(self, seq: int) -> None:
        """It was found to be gone."""
        if self.index.drop(seq):
            self._followers.ring()

    # -- for the letter index actor ------------------------------------------------------------------------------------

    def begin_load(self) -> None:
        """A feed was opened: all that is stored is told, and then every new one."""
        self.index.begin_load()
        self._followers.ring()

    def end_load(self, now: float) -> None:
        """All that was stored has been told."""
        self.index.end_load()
        self.index.expire(now)
        self._followers.ring()

    def lose(self, why: str, at: float) -> None:
        """The feed is lost."""
        self.index.lose(why, at)
        self._followers.ring()

    def put(self, seq: int, letter: DeadLetter, now: float) -> None:
        """This is stored; what has grown too old meanwhile is forgotten."""
        self.index.put(seq, letter)
        self.index.expire(now)
        self._followers.ring()
