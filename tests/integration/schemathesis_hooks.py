"""Loaded by schemathesis, in a process of its own: a stream that is asked for without an end ends after a second."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Nobody reads a stream for ten minutes here."""
    if case.operation.path.endswith("/watch"):
        case.query = {**(case.query or {}), "timeout_sec": 1}
