"""Foreign errors become ours at this edge, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors

from pyoco_runtime.errors import LinkClosed, NatsUnavailable


@contextmanager
def translating() -> Iterator[None]:
    """Turn what nats-py raises when the server is away, slow or refuses into NatsUnavailable."""
    try:
        yield
    except nats.errors.ConnectionClosedError as error:
        raise LinkClosed(describe(error)) from error
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise NatsUnavailable(describe(error)) from error


def describe(error: BaseException) -> str:
    """The error's type and text in one line."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
