"""A crash as a value: what, why and where, in words for the person who must act on it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from attrs import frozen


@frozen
class Crash:
    """The last crash of an actor."""

    type: str
    message: str
    where: str
    at: float


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Flatten exception groups, which nest one level for each task group, to the errors inside."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def root_error(error: BaseException) -> BaseException:
    """The first error inside; most groups hold just one."""
    return next(leaves(error))


def describe(error: BaseException, at: float) -> Crash:
    """Turn an error into the crash that reports and tables show."""
    inner = list(leaves(error))
    first = inner[0]
    message = str(first) or repr(first)
    if len(inner) > 1:
        message += f" (and {len(inner) - 1} more)"
    return Crash(type(first).__name__, message, _where(first), at)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    last = frames[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"
