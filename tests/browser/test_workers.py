"""The view of the workers."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House


def test_a_worker_is_seen_working_and_resting(house: House, visit: Visiting) -> None:
    """Its state follows by itself, and its run is a link."""
    window = visit("/workers")
    row = window.row("w1")
    window.see(window.t("shared.worker.IDLE"), row)
    run_id = house.submit("slow")
    window.see(window.t("shared.worker.RUNNING"), row)
    row.get_by_role("link", name=run_id[:8]).first.click()
    expect(window.page).to_have_url(f"{house.url}/#/runs/{run_id}")
    house.http.post(f"/runs/{run_id}/cancel")
    house.until_ended(run_id)
    window.goto("/workers")
    window.see(window.t("shared.worker.IDLE"), window.row("w1"))


def test_a_worker_comes_and_goes_before_our_eyes(house: House, visit: Visiting) -> None:
    """One that was stopped in order says so."""
    window = visit("/workers")
    window.row("w1")
    second = house.start_worker("w2", tags="other")
    row = window.row("w2")
    second.terminate()
    window.see(window.t("shared.worker.STOPPED_GRACEFUL"), row)


def test_a_worker_is_hidden_and_shown_again(house: House, visit: Visiting) -> None:
    """It disappears from the list, and from the list alone."""
    gone = house.start_worker("w3", tags="other")
    house.until_worker("w3")
    gone.terminate()
    window = visit("/workers")
    window.row("w3")
    window.click(window.t("workers.hide_label", worker="w3"))
    expect(window.page.get_by_role("row").filter(has_text="w3")).to_have_count(0)
    window.page.get_by_label(window.t("workers.show_hidden")).check()
    window.row("w3")
    window.click(window.t("workers.unhide_label", worker="w3"))
    window.page.get_by_label(window.t("workers.show_hidden")).uncheck()
    window.row("w3")


def test_the_flows_that_a_worker_knows_are_told(visit: Visiting) -> None:
    """As it announces them."""
    row = visit("/workers").row("w1")
    expect(row).to_contain_text("failing")
