"""pyoco-runtime: runs Pyoco flows on many machines, as a supervision tree of small actors around NATS JetStream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyoco_runtime.client import AsyncPyocoHttpClient as AsyncPyocoHttpClient
    from pyoco_runtime.client import PyocoHttpClient as PyocoHttpClient
    from pyoco_runtime.embed import worker as worker

__all__ = ["AsyncPyocoHttpClient", "PyocoHttpClient", "worker"]


def __getattr__(name: str) -> object:
    """Import what is exported when it is asked for: `pyoco_runtime.core` alone needs none of it."""
    if name == "worker":
        from pyoco_runtime.embed import worker

        return worker
    if name in ("AsyncPyocoHttpClient", "PyocoHttpClient"):
        from pyoco_runtime import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
