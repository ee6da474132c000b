"""The list with 10,000 stored runs: the page stays small, and what a person waits for is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House, house_in
from tests.browser.memory import Meter
from tests.browser.stored_runs import many, store
from tests.integration.gateway_client import until

COUNT = 10_000
ROWS = "tr[data-run]"
MOST_ROWS = 120  # drawn at a time, whatever is loaded


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with 10,000 ended runs."""
    with house_in(tmp_path_factory.mktemp("full")) as made:
        store(made.nats.url, many(COUNT))
        until(lambda: sum(made.http.get("/stats").json()["counts"].values()), lambda found: found == COUNT)
        yield made


def test_ten_thousand_runs_are_listed_filtered_and_scrolled(full: House, visit: Visiting) -> None:
    """Times are printed and not judged, as others share this machine; docs/how-to/use-the-dashboard.md states them."""
    window = visit("/workers", at=full)
    window.see(window.t("workers.empty"))
    begin = time.monotonic()
    window.open("/runs")
    window.page.locator(ROWS).first.wait_for()
    first_row = time.monotonic() - begin
    expect(window.page.get_by_role("link", name=f"{COUNT:,}").first).to_be_visible()
    begin = time.monotonic()
    window.page.get_by_role("link", name=window.t("shared.status.CANCELLED")).first.click()
    expect(window.page.locator(ROWS).first).to_contain_text(window.t("shared.status.CANCELLED"))
    filtered = time.monotonic() - begin
    for _ in range(40):
        window.page.mouse.wheel(0, 4000)
        window.page.wait_for_timeout(20)
    window.page.wait_for_function("() => window.scrollY > 5000")
    assert window.page.locator(ROWS).count() <= MOST_ROWS
    print(f"first of {COUNT} rows {first_row:.2f} s, filtered {filtered:.2f} s; {Meter(window.page).sample()}")
