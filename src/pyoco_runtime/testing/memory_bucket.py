"""A KV bucket in memory: the last value of each key, and one sequence of revisions over all of them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from pyoco_runtime.errors import RevisionConflict


@frozen
class Entry:
    """The last write to a key; without a value it was a deletion."""

    key: str
    revision: int
    value: bytes | None


class MemoryBucket:
    """Plain state, changed at one moment each; whoever listens is told of every write in order."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._revision = 0
        self._listeners: list[Callable[[Entry], None]] = []

    def get(self, key: str) -> Entry | None:
        """The last write to this key, deletions included."""
        return self._entries.get(key)

    def revision_of(self, key: str) -> int:
        """The revision of the last write to this key; 0 if there was none."""
        entry = self._entries.get(key)
        return entry.revision if entry else 0

    def entries(self) -> list[Entry]:
        """The last write to every key, oldest first."""
        return sorted(self._entries.values(), key=lambda entry: entry.revision)

    def write(self, key: str, value: bytes | None, expected: int | None) -> int:
        """Write over exactly the expected revision (None: over any); returns the new one. Raises RevisionConflict."""
        found = self.revision_of(key)
        if expected is not None and expected != found:
            raise RevisionConflict(f"{key} is at revision {found}, not {expected}")
        self._revision += 1
        entry = self._entries[key] = Entry(key, self._revision, value)
        for listener in tuple(self._listeners):
            listener(entry)
        return entry.revision

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Have `listener` called with every write; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
