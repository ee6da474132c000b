"""A worker whose ticker crashes when somebody asks for it: fragile_worker.py <file> --role worker ...

It crashes once for every time that the file appears, with the file's words, removes it, and is pyoco-runtime otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyoco_runtime.cli.main import main
from pyoco_runtime.jetstream.delivery import NatsDelivery


def wish_for(crash: Path, why: str) -> None:
    """Ask for a crash with these words; the file appears whole."""
    draft = crash.with_suffix(".draft")
    draft.write_text(why)
    draft.rename(crash)


def crash_at(wish: Path) -> None:
    """The sign of life of a delivery fails in a way that nobody expects."""
    in_progress = NatsDelivery.in_progress

    def obey() -> None:
        if wish.exists():
            why = wish.read_text()
            wish.unlink()
            raise RuntimeError(why)

    async def fragile(self: NatsDelivery) -> None:
        obey()
        await in_progress(self)

    NatsDelivery.in_progress = fragile  # type: ignore[method-assign]


if __name__ == "__main__":
    crash_at(Path(sys.argv.pop(1)))
    sys.exit(main())
