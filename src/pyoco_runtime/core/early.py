"""Blocks that may end early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def may_end_early(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T, bool]]:
    """As contextlib.contextmanager, for one that swallows its own cancellation: what follows the block is reachable."""
    return contextmanager(function)  # type: ignore[return-value]  # typeshed: it may or may not swallow
