"""Flows to look at, and their resolver: --flow-resolver <this file>:resolve

Params decide how long a task takes, so that a test can see a run while it lasts.
"""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import sys
import time

from pyoco import task
from pyoco.core.context import Context
from pyoco.core.models import Flow
from pyoco.dsl.syntax import switch

PATIENCE_SEC = 120.0  # a test that failed must not leave a process behind


def rest(ctx: Context, seconds: float) -> bool:
    """Take so long, unless the run is cancelled; returns whether it was."""
    until = time.monotonic() + min(seconds, PATIENCE_SEC)
    while time.monotonic() < until:
        if ctx.is_cancelled:
            return True
        time.sleep(0.02)
    return False


# -- hello: two tasks -------------------------------------------------------------------------------------------------


@task
def greet(ctx: Context, name: str = "world", seconds: float = 0.0) -> str:
    """Print a greeting."""
    print(f"Hello, {name}!")
    rest(ctx, seconds)
    return f"Hello, {name}!"


@task
def count(ctx: Context, greet: str) -> int:
    """Count the letters of what the task `greet` returned."""
    return len(greet)


# -- report: a line of five, of which one prints a lot ----------------------------------------------------------------


@task
def fetch(ctx: Context, region: str = "eu", seconds: float = 0.05) -> list[int]:
    """Get figures from somewhere."""
    print(f"fetching {region} ...")
    rest(ctx, seconds)
    return [12, 7, 31, 18]


@task
def clean(ctx: Context, fetch: list[int], seconds: float = 0.05) -> list[int]:
    """Put them in order."""
    rest(ctx, seconds)
    return sorted(fetch)


@task
def summarise(ctx: Context, clean: list[int], seconds: float = 0.05) -> dict[str, int]:
    """Say what there is."""
    for number in clean:
        print(f"row {number:>4}: ok")
        rest(ctx, seconds / len(clean))
    print("one row was odd", file=sys.stderr)
    return {"rows": len(clean), "sum": sum(clean)}


@task
def send_the_weekly_report_to_everybody_who_asked_for_it(ctx: Context, summarise: dict[str, int]) -> str:
    """A name that is longer than its box."""
    return f"sent {summarise['sum']}"


# -- slow, failing, printing ------------------------------------------------------------------------------------------


@task
def wait(ctx: Context, seconds: float = PATIENCE_SEC) -> str:
    """Wait; listens to a cancel."""
    print("waiting")
    return "stopped" if rest(ctx, seconds) else "waited"


@task
def check(ctx: Context, amount: int = 0) -> int:
    """Refuse what is not there."""
    print(f"checking {amount}")
    if amount <= 0:
        raise ValueError("the amount of order 4711 is not a positive number")
    return amount


@task
def book(ctx: Context, check: int) -> int:
    """Is never reached when `check` fails."""
    return check


@task
def speak(ctx: Context, lines: int = 20, seconds: float = 0.0) -> str:
    """Print line after line, to both streams."""
    for number in range(lines):
        print(f"line {number} of {lines}", file=sys.stderr if number % 5 == 4 else sys.stdout)
        rest(ctx, seconds / lines)
    return "said"


# -- loops and switches -----------------------------------------------------------------------------------------------


@task
def prepare(ctx: Context) -> list[str]:
    """What the loop goes over."""
    return ["north", "south", "west"]


@task
def measure(ctx: Context) -> str:
    """Once for every item."""
    print("measuring")
    return "measured"


@task
def polish(ctx: Context) -> str:
    """A second task in the loop."""
    return "polished"


@task
def finish(ctx: Context) -> str:
    """After the loop."""
    return "finished"


@task
def weigh(ctx: Context) -> str:
    """Before the switch."""
    return "weighed"


@task
def by_air(ctx: Context) -> str:
    """One way."""
    return "by air"


@task
def by_sea(ctx: Context) -> str:
    """The other way."""
    return "by sea"


@task
def by_hand(ctx: Context) -> str:
    """When no case fits."""
    return "by hand"


@task
def deliver(ctx: Context) -> str:
    """After the switch."""
    return "delivered"


LONG = "a_flow_whose_name_somebody_generated_from_a_sentence_and_never_looked_at_again_because_nobody_had_to_type_it"

FLOWS = {
    "hello": Flow(name="hello") >> greet >> count,
    "report": Flow(name="report")
    >> fetch
    >> clean
    >> summarise
    >> send_the_weekly_report_to_everybody_who_asked_for_it,
    "slow": Flow(name="slow") >> wait,
    "failing": Flow(name="failing") >> check >> book,
    "printing": Flow(name="printing") >> speak,
    "looping": Flow(name="looping") >> prepare >> (measure >> polish)["$ctx.params.items as item"] >> finish,
    "switching": Flow(name="switching")
    >> weigh
    >> switch("$ctx.params.how")["air" >> by_air, "sea" >> by_sea, "*" >> by_hand]
    >> deliver,
}


def resolve(name: str) -> Flow:
    """The flow of that name; raises KeyError."""
    return FLOWS["hello"] if name == LONG else FLOWS[name]


resolve.flows = tuple(FLOWS)  # type: ignore[attr-defined]  # a worker announces them
