"""Three small flows and their resolver, for a worker: --flow-resolver examples/hello_flow.py:resolve

A resolver is called with a flow's name for every run. It returns the Flow, or raises KeyError for a name that it
does not have.
"""

# ruff: noqa: TID251 - user code imports pyoco
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import time

from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow


@task
def greet(ctx: Context, name: str = "world") -> str:
    """Print a greeting; `name` is a param of the run."""
    print(f"Hello, {name}!")
    return f"Hello, {name}!"


@task
def count(ctx: Context, greet: str) -> int:
    """Count the letters of what the task `greet` returned."""
    return len(greet)


@task
def wait(ctx: Context, seconds: float = 10.0) -> str:
    """Wait, and stop early if the run is cancelled."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if ctx.is_cancelled:
            print("asked to stop")
            return "stopped"
        time.sleep(0.05)
    return "waited"


@task
def fail(ctx: Context) -> None:
    """Raise, as user code does now and then."""
    raise ValueError("this flow always fails")


def resolve(name: str) -> Flow:
    """The flow of that name; raises KeyError."""
    return FLOWS[name]


FLOWS = {
    "hello": Flow(name="hello") >> greet >> count,
    "slow": Flow(name="slow") >> wait,
    "failing": Flow(name="failing") >> fail,
}
