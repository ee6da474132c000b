"""The view of the dead letters."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House
from tests.integration.gateway_client import good, until


def letters(house: House, run_id: str) -> list[int]:
    """The numbers of a run's letters."""
    return [each["seq"] for each in good(house.http.get("/dlq", params={"run_id": run_id}))["items"]]


def test_a_letter_appears_and_is_replayed(house: House, visit: Visiting) -> None:
    """The new run is a link; the letter stays."""
    window = visit("/letters")
    run_id = house.ended("failing", amount=-7)
    [seq] = until(lambda: letters(house, run_id), lambda found: len(found) == 1)
    row = window.row(run_id[:8])
    window.see(window.t("letters.reason_execution_error"), row)
    window.click(window.t("letters.replay_label", seq=seq))
    link = window.page.get_by_role("link", name=re.compile("^[0-9a-f]{8}")).filter(has_not_text=run_id[:8])
    window.see(window.t("letters.replayed_as"))
    expect(link.first).to_be_visible()
    until(lambda: house.http.get("/runs", params={"flow": "failing"}).json(), lambda runs: len(runs) >= 2)


def test_letters_are_filtered_by_reason_and_dropped(house: House, visit: Visiting) -> None:
    """The filter is in the address; dropping asks first."""
    failed = house.ended("failing")
    missing = house.ended("no_such_flow")
    until(lambda: letters(house, failed) + letters(house, missing), lambda found: len(found) == 2)
    window = visit("/letters")
    window.row(failed[:8])
    window.row(missing[:8])
    reason = window.t("letters.reason_flow_not_found")
    window.page.get_by_role("link", name=reason).first.click()
    expect(window.page).to_have_url(re.compile("reason=flow_not_found"))
    window.row(missing[:8])
    expect(window.page.get_by_role("row").filter(has_text=failed[:8])).to_have_count(0)
    [seq] = letters(house, missing)
    window.click(window.t("letters.drop_label", seq=seq))
    window.click(window.t("letters.drop"), window.page.get_by_role("dialog"))
    expect(window.page.get_by_role("row").filter(has_text=missing[:8])).to_have_count(0)
    assert letters(house, missing) == []


def test_a_letter_is_read(house: House, visit: Visiting) -> None:
    """What it says in full, on request."""
    run_id = house.ended("failing")
    [seq] = until(lambda: letters(house, run_id), lambda found: len(found) == 1)
    window = visit("/letters")
    window.row(run_id[:8])
    window.click(window.t("letters.show", seq=seq))
    window.see(window.t("letters.hint_execution_error"))
