"""All dead letters in memory, as lists and metrics show them."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.letter_shelf import LetterEntry, LetterFilter, LetterShelf
from pyoco_runtime.model.positions import Position, Positions
from pyoco_runtime.model.roll_call import Behind, RollCall
from pyoco_runtime.model.run_summary import cut, instant

__all__ = ["MAX_LETTERS", "LetterEntry", "LetterFilter", "LetterIndex"]

MAX_LETTERS = 100_000  # as many as the stream keeps; about 45 MB

H = TypeVar("H", bound=Hashable)


class LetterIndex:
    """Every letter once, the newest first. What a letter says never changes; that it is gone nobody tells: `drop` it.

    A list costs O(log letters + answer), and O(tenants) besides if all tenants are asked for. An entry takes
    about 0.45 kB, and at worst, if each letter is of another flow, 1.7 kB.
    """

    def __init__(self, max_letters: int = MAX_LETTERS, max_age_sec: float | None = None) -> None:
        """`max_age_sec` is how long the stream keeps a letter."""
        self._max_letters = max_letters
        self._max_age_sec = max_age_sec
        self._entries: dict[int, LetterEntry] = {}
        self._order = Positions()
        self._shelves: dict[str | None, LetterShelf] = {}
        self._of_run: dict[str, Position | Positions] = {}
        """Most runs have one letter, and a set takes four times as much."""
        self._calling = RollCall("dead letters")
        self._shared: dict[Any, Any] = {}
        self._fallen_to = 0
        """The highest sequence that fell out because there were too many."""

    def __len__(self) -> int:
        return len(self._entries)

    # -- what the feed says --------------------------------------------------------------------------------------------

    @property
    def behind(self) -> Behind | None:
        """Why what is here may be old; None while it is as new as the feed."""
        return self._calling.behind

    def lose(self, why: str, at: float) -> None:
        """Nothing more is heard from now on; what is here stays."""
        self._calling.lose(why, at)

    def begin_load(self) -> None:
        """From now on all that is stored is told, oldest first."""
        self._calling.begin(map(str, self._entries))
        self._fallen_to = 0

    def end_load(self) -> None:
        """All has been told: what was not is gone."""
        for seq in self._calling.end():
            self.drop(int(seq))

    def put(self, seq: int, letter: DeadLetter) -> None:
        """This is stored."""
        self._calling.mention(str(seq))
        entry = self._entry(seq, letter)
        if self._entries.get(seq) == entry:
            return
        self.drop(seq)  # the stream was made anew, and counts from the beginning again
        self._keep(seq, entry)
        while len(self._entries) > self._max_letters and (oldest := self._order.first()) is not None:
            self._fallen_to = max(self._fallen_to, int(oldest[0]))
            self.drop(int(oldest[0]))

    def drop(self, seq: int) -> bool:
        """It was found to be gone; whether it was known."""
        entry = self._entries.pop(seq, None)
        if entry is None:
            return False
        self._order.remove(entry.position)
        shelf = self._shelves[entry.tenant_id]
        shelf.remove(entry)
        if not len(shelf):
            del self._shelves[entry.tenant_id]
        if entry.run_id is not None:
            self._forget_run(entry.run_id, entry.position)
        return True

    def expire(self, now: float) -> None:
        """Forget those that have grown too old for the stream."""
        if self._max_age_sec is None:
            return
        while (oldest := self._order.first()) is not None:
            if now - self._entries[int(oldest[0])].timestamp <= self._max_age_sec:
                break
            self.drop(int(oldest[0]))

    # -- what is asked -------------------------------------------------------------------------------------------------

    @property
    def is_partial(self) -> bool:
        """More letters are stored than are here: the oldest have fallen out."""
        return self._fallen_to > 0

    def get(self, seq: int) -> LetterEntry | None:
        """What is known of a letter."""
        return self._entries.get(seq)

    def query(self, wanted: LetterFilter, limit: int, before_seq: int | None = None) -> tuple[LetterEntry, ...]:
        """The newest letters that match, under `before_seq` if given; the next page is before the last of them."""
        below: Position | None = None if before_seq is None else (before_seq, "")
        if wanted.run_id is not None:
            return tuple(islice(self._of_one_run(wanted, wanted.run_id, below), limit))
        return tuple(self._entries[int(position[0])] for position in islice(self._matching(wanted, below), limit))

    def count(self, tenant: str | None = None) -> int:
        """How many there are, of one tenant or of all."""
        return len(self._entries) if tenant is None else sum(map(len, self._shelves_of(tenant)))

    def counts(self, tenant: str | None = None, *, with_nobodys: bool = False) -> dict[Reason, int]:
        """How many there are for each reason, of one tenant, perhaps with those of none, or of all."""
        shelves = self._shelves_with(tenant, with_nobodys)
        return {reason: sum(shelf.count(reason) for shelf in shelves) for reason in Reason}

    def counts_by_tenant(self) -> dict[str | None, int]:
        """How many each tenant has that has any; None stands for letters without one."""
        return {tenant: len(shelf) for tenant, shelf in self._shelves.items()}

    # -- inside --------------------------------------------------------------------------------------------------------

    def _shelves_of(self, tenant: str | None) -> list[LetterShelf]:
        if tenant is None:
            return list(self._shelves.values())
        found = self._shelves.get(tenant)
        return [] if found is None else [found]

    def _shelves_with(self, tenant: str | None, with_nobodys: bool) -> list[LetterShelf]:
        shelves = self._shelves_of(tenant)
        if tenant is not None and with_nobodys and None in self._shelves:
            shelves.append(self._shelves[None])
        return shelves

    def _matching(self, wanted: LetterFilter, below: Position | None) -> Iterable[Position]:
        shelves = self._shelves_with(wanted.tenant, wanted.with_nobodys)
        found = [shelf.descending(wanted, below) for shelf in shelves]
        return found[0] if len(found) == 1 else heapq.merge(*found, reverse=True)

    def _of_one_run(self, wanted: LetterFilter, run_id: str, below: Position | None) -> Iterator[LetterEntry]:
        """A run has few letters: they are looked at one by one."""
        found = self._of_run.get(run_id, ())
        positions = found.descending(below) if isinstance(found, Positions) else (found,) if found else ()
        for position in positions:
            entry = self._entries[int(position[0])]
            if (below is None or position < below) and wanted.matches(entry):
                yield entry

    def _entry(self, seq: int, letter: DeadLetter) -> LetterEntry:
        return LetterEntry(
            position=(seq, ""),
            timestamp=instant(letter.timestamp) or 0.0,
            reason=letter.reason,
            run_id=None if letter.run_id is None else cut(letter.run_id),
            flow_name=None if letter.flow_name is None else self._share(cut(letter.flow_name)),
            tag=None if letter.tag is None else self._share(cut(letter.tag)),
            tenant_id=self._share(letter.tenant_id),  # whole: two tenants must never look the same
        )

    def _keep(self, seq: int, entry: LetterEntry) -> None:
        self._entries[seq] = entry
        self._order.add(entry.position)
        shelf = self._shelves.get(entry.tenant_id)
        if shelf is None:
            shelf = self._shelves[entry.tenant_id] = LetterShelf()
        shelf.add(entry)
        if entry.run_id is not None:
            self._note_run(entry.run_id, entry.position)

    def _note_run(self, run_id: str, position: Position) -> None:
        found = self._of_run.setdefault(run_id, position)
        if isinstance(found, Positions):
            found.add(position)
        elif found is not position:
            both = self._of_run[run_id] = Positions()
            both.add(found)
            both.add(position)

    def _forget_run(self, run_id: str, position: Position) -> None:
        found = self._of_run[run_id]
        if isinstance(found, Positions) and len(found) > 1:
            found.remove(position)
        else:
            del self._of_run[run_id]

    def _share(self, value: H) -> H:
        """The same object for equal values: flows, tags and tenants repeat in most letters."""
        if len(self._shared) >= 20_000:
            self._shared.clear()
        found: H = self._shared.setdefault(value, value)
        return found
