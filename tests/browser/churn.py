"""Does the page grow? Runs come and go while it is open, and what it holds is counted.

    python -m tests.browser.churn --minutes 30

prints a line a minute, and at the end the first third beside the last.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from tests.browser.chromium import chromium
from tests.browser.house import House, house_in
from tests.browser.memory import Meter, Sample
from tests.browser.visit import Visit, visiting
from tests.integration.gateway_client import load

VIEWS = ("/runs", "/workers", "/house", "/charts", "/letters", "/wheels")


@frozen
class Reading:
    """One line of the measurement."""

    after_sec: float
    runs: int
    sample: Sample


def wander(visit: Visit, submitted: list[str]) -> None:
    """Look at every view once, at one of the runs, and come back to the list."""
    paths = [*VIEWS, *(f"/runs/{run_id}" for run_id in submitted[-1:])]
    for path in paths:
        visit.goto(path)
        visit.page.wait_for_timeout(200)
    visit.goto("/runs")
    visit.page.wait_for_timeout(500)


def measure(visit: Visit, house: House, *, lasting_sec: float, every_sec: float, per_sec: float) -> Iterator[Reading]:
    """Count again and again while runs churn; before each count every view has been visited."""
    meter = Meter(visit.page)
    begin = time.monotonic()
    submitted: list[str] = []

    def submit(number: int) -> None:
        submitted.append(house.submit("failing" if number % 10 == 9 else "hello"))

    with load(per_sec, submit):
        for number in range(1, int(lasting_sec / every_sec) + 1):
            wander(visit, submitted)
            visit.page.wait_for_timeout(max(0.0, begin + number * every_sec - time.monotonic()) * 1000)
            yield Reading(time.monotonic() - begin, len(submitted), meter.sample())


def thirds(readings: list[Reading]) -> str:
    """The first third beside the last."""
    size = max(1, len(readings) // 3)
    parts = readings[:size], readings[-size:]
    nodes, heap = (
        [sum(getattr(each.sample, name) for each in part) / size for part in parts] for name in ("nodes", "heap_mb")
    )
    return f"first third {heap[0]:.2f} MB, {nodes[0]:.0f} nodes; last third {heap[1]:.2f} MB, {nodes[1]:.0f} nodes"


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--every-sec", type=float, default=60.0)
    options.add_argument("--per-sec", type=float, default=5.0, help="runs a second")
    chosen = options.parse_args()
    readings: list[Reading] = []
    with (
        tempfile.TemporaryDirectory() as place,
        house_in(Path(place)) as house,
        chromium() as browser,
        visiting(browser, house.url) as visit,
    ):
        house.start_worker()
        house.until_worker("w1")
        visit.open("/runs")
        lasting_sec = chosen.minutes * 60
        for reading in measure(
            visit, house, lasting_sec=lasting_sec, every_sec=chosen.every_sec, per_sec=chosen.per_sec
        ):
            readings.append(reading)
            print(f"{reading.after_sec:6.0f} s {reading.runs:6} runs {reading.sample}", flush=True)
    print(thirds(readings))


if __name__ == "__main__":
    main()
