"""A page that stays open all day must not grow. `python -m tests.browser.churn` measures half an hour."""

from __future__ import annotations

from tests.browser.churn import measure
from tests.browser.conftest import Visiting
from tests.browser.house import House

LASTING_SEC = 60.0
EVERY_SEC = 10.0
PER_SEC = 10.0


def test_the_page_does_not_grow_while_runs_come_and_go(house: House, visit: Visiting) -> None:
    """Rows that were kept would add some twenty nodes a run. Some hundreds come and go with Chromium's collector."""
    window = visit("/runs")
    readings = list(measure(window, house, lasting_sec=LASTING_SEC, every_sec=EVERY_SEC, per_sec=PER_SEC))
    for each in readings:
        print(f"{each.after_sec:4.0f} s {each.runs:5} runs {each.sample}")
    early, late = readings[2], readings[-1]
    runs = late.runs - early.runs
    assert runs > 100
    assert late.sample.nodes - early.sample.nodes < 5 * runs
