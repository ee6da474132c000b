"""The list of runs."""

from __future__ import annotations

import re
import time

from attrs import evolve
from playwright.sync_api import Locator, expect

from pyoco_runtime.model.run import RunStatus
from tests.browser.conftest import Visiting
from tests.browser.house import House
from tests.browser.stored_runs import many, store
from tests.browser.visit import Visit


def row_of(window: Visit, run_id: str) -> Locator:
    """The row of a run."""
    return window.page.locator(f"tr[data-run='{run_id}']")


def test_a_run_is_submitted_and_seen_to_its_end(house: House, visit: Visiting) -> None:
    """It comes into an open list by itself, runs, and completes."""
    window = visit("/runs")
    window.see(window.t("shell.nav.runs"))
    run_id = house.submit("hello", seconds=1.5)
    row = row_of(window, run_id)
    expect(row).to_contain_text(window.t("shared.status.RUNNING"))
    expect(row).to_contain_text(window.t("shared.status.COMPLETED"))
    expect(row).to_contain_text("w1")
    row.get_by_role("link", name="hello").click()
    expect(window.page).to_have_url(f"{house.url}/#/runs/{run_id}")


def test_a_run_that_fails_says_why(house: House, visit: Visiting) -> None:
    """In its row."""
    run_id = house.ended("failing")
    row = row_of(visit("/runs"), run_id)
    expect(row).to_contain_text("the amount of order 4711 is not a positive number")


def test_a_run_is_cancelled_from_its_row(house: House, visit: Visiting) -> None:
    """The page asks first; the row shows the end."""
    run_id = house.submit("slow")
    house.until_running(run_id)
    window = visit("/runs")
    name = window.t("runs.cancel_run", flow="slow", id=run_id[:8])
    window.click(name)
    dialog = window.page.get_by_role("dialog")
    window.click(window.t("shell.no"), dialog)
    assert house.run(run_id)["status"] == "RUNNING"
    window.click(name)
    dialog.get_by_label(window.t("runs.cancel.reason")).fill("no longer needed")
    window.click(window.t("runs.cancel.yes"), dialog)
    expect(row_of(window, run_id)).to_contain_text(window.t("shared.status.CANCELLED"))
    assert house.until_ended(run_id) == "CANCELLED"


def test_filters_are_in_the_address(house: House, visit: Visiting) -> None:
    """So a filtered list can be sent to somebody."""
    good_one, bad_one = house.ended("hello"), house.ended("failing")
    window = visit("/runs")
    expect(row_of(window, good_one)).to_be_visible()
    window.page.get_by_role("link", name=re.compile(window.t("shared.status.FAILED"))).first.click()
    expect(window.page).to_have_url(re.compile("status=FAILED"))
    expect(row_of(window, bad_one)).to_be_visible()
    expect(row_of(window, good_one)).to_have_count(0)
    window.open("/runs?flow=hello")
    expect(row_of(window, good_one)).to_be_visible()
    expect(row_of(window, bad_one)).to_have_count(0)
    window.page.get_by_label(window.t("runs.field.q")).fill(bad_one)
    expect(row_of(window, good_one)).to_have_count(0)
    window.see(window.t("runs.none_match"))


def test_a_run_whose_worker_is_silent_is_stale(house: House, visit: Visiting) -> None:
    """A reading of the page: RUNNING, and no heartbeat for half a minute."""
    now = time.time()
    [run] = many(1, flow="left_behind")
    stale = evolve(run, status=RunStatus.RUNNING, end_time=None, heartbeat_at=now - 60, updated_at=now)
    store(house.nats.url, [stale])
    window = visit("/runs")
    expect(row_of(window, run.run_id)).to_contain_text(window.t("shared.status.STALE"))


def test_what_one_reads_does_not_move(house: House, visit: Visiting) -> None:
    """While the list is scrolled new runs wait behind a button."""
    store(house.nats.url, many(300, flow="tall"))
    window = visit("/runs?flow=tall")
    window.row("tall")
    window.page.mouse.move(400, 400)
    window.page.mouse.wheel(0, 3000)
    window.page.wait_for_function("() => window.scrollY > 1000")
    under_the_eye = "document.elementFromPoint(400, 400).closest('tr').dataset.run"
    before = window.page.evaluate(under_the_eye)
    run_id = house.submit("tall", tag="nobody")
    held = window.page.get_by_role("button", name=window.t("runs.new", n=1))
    held.wait_for()
    assert window.page.evaluate(under_the_eye) == before
    held.click()
    expect(row_of(window, run_id)).to_be_visible()
