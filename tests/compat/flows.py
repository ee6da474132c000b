"""Flows that both kinds of workers run, and their resolver: --flow-resolver <this file>:resolve"""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import time

from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow

PATIENCE_SEC = 60.0  # a test that failed must not leave a process behind


@task
def greet(ctx: Context, name: str = "world") -> str:
    """Return a greeting; `name` is a param of the run."""
    return f"Hello, {name}!"


@task
def count(ctx: Context, greet: str) -> int:
    """Count the letters of what the task `greet` returned."""
    return len(greet)


@task
def nap(ctx: Context, seconds: float = 0.0) -> str:
    """Take that long, whatever happens."""
    time.sleep(seconds)
    return "done"


@task
def wait(ctx: Context) -> str:
    """Wait until the run is cancelled."""
    until = time.monotonic() + PATIENCE_SEC
    while time.monotonic() < until and not ctx.is_cancelled:
        time.sleep(0.02)
    return "stopped"


@task
def after(ctx: Context) -> str:
    """Come after another one; a task belongs to one flow only, as building a flow changes it."""
    return "done"


@task
def fail(ctx: Context) -> None:
    """Raise."""
    raise ValueError("this flow always fails")


def resolve(name: str) -> Flow:
    """The flow of that name; raises KeyError."""
    return FLOWS[name]


FLOWS = {
    "hello": Flow(name="hello") >> greet >> count,
    "nap": Flow(name="nap") >> nap,
    "wait": Flow(name="wait") >> wait >> after,
    "fail": Flow(name="fail") >> fail,
}
