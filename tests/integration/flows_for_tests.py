"""Flows that do what the worker's tests need, and their resolver: --flow-resolver <this file>:resolve

A task that `notes` appends `<run id> <attempt>` to a file, in one write: so a test counts how often it was executed.
"""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow

PATIENCE_SEC = 120.0  # a test that failed must not leave a process behind


def note(ctx: Context, notes: str) -> None:
    """Leave a trace of this execution."""
    if notes:
        with Path(notes).open("a") as file:
            file.write(f"{ctx.run_context.run_id} {ctx.run_context.metadata['attempt']}\n")


@task
def greet(ctx: Context, name: str = "world") -> str:
    """Print a greeting, to both streams and past them."""
    print(f"Hello, {name}!")
    print("to whom it may concern", file=sys.stderr)
    os.write(1, b"this is no JSON\n")
    return f"Hello, {name}!"


@task
def count(ctx: Context, greet: str) -> int:
    """Count the letters of what the task `greet` returned."""
    return len(greet)


@task
def short(ctx: Context, notes: str = "", seconds: float = 0.0) -> str:
    """Take a moment."""
    note(ctx, notes)
    time.sleep(seconds)
    return "done"


@task
def gate(ctx: Context, release: str, notes: str = "") -> str:
    """Wait until there is a file; listens to a cancel."""
    note(ctx, notes)
    until = time.monotonic() + PATIENCE_SEC
    while time.monotonic() < until and not Path(release).exists():
        if ctx.is_cancelled:
            return "stopped"
        time.sleep(0.01)
    return "released"


@task
def deaf(ctx: Context) -> None:
    """Wait, and listen to nobody."""
    time.sleep(PATIENCE_SEC)


@task
def fail(ctx: Context) -> None:
    """Raise."""
    raise ValueError("this flow always fails")


@task
def leave(ctx: Context) -> None:
    """End the process without a word."""
    os._exit(7)


@task
def kill(ctx: Context) -> None:
    """End the process as the kernel does when it is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@task
def crash(ctx: Context) -> None:
    """Read where nothing is."""
    ctypes.string_at(0)


def resolve(name: str) -> Flow:
    """The flow of that name; raises KeyError."""
    return FLOWS[name]


FLOWS = {
    "hello": Flow(name="hello") >> greet >> count,
    "short": Flow(name="short") >> short,
    "gate": Flow(name="gate") >> gate,
    "deaf": Flow(name="deaf") >> deaf,
    "fail": Flow(name="fail") >> fail,
    "leave": Flow(name="leave") >> leave,
    "kill": Flow(name="kill") >> kill,
    "crash": Flow(name="crash") >> crash,
}
