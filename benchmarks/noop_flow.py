"""A flow of one task that does nothing, for worker, peer and bare engine alike."""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from pyoco import task
from pyoco.core.models import Flow


@task
def nothing() -> None:
    """Do nothing."""


FLOW = Flow(name="noop") >> nothing


def resolve(name: str) -> Flow:
    """The one flow there is."""
    if name != "noop":
        raise KeyError(name)
    return FLOW
