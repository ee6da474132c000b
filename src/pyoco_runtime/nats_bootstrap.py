"""The program nats-bootstrap, which the published pyoco-server starts its nats-server with."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

STARTING = ("up", "--")
"""Its arguments before those of the nats-server."""


def find_bootstrap() -> Path | None:
    """The program beside our interpreter or on the PATH, if it is installed."""
    beside = shutil.which("nats-bootstrap", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("nats-bootstrap")
    return Path(found) if found else None


def usual_store() -> Path:
    """Where a nats-server keeps its streams that was not told where: there the published program has put them."""
    return Path(os.environ.get("TMPDIR") or "/tmp") / "nats"
