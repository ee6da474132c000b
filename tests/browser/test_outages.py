"""What is lost is said, and comes back by itself: NATS, the gateway, a worker; and one panel's failure is its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House, house_in


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house of which everything may be killed."""
    with house_in(tmp_path_factory.mktemp("frail"), PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC="3") as made:
        made.start_worker("w1")
        made.until_worker("w1")
        yield made


def test_nats_is_killed_and_comes_back(frail: House, visit: Visiting) -> None:
    """The page says so, keeps what it shows, and goes on: a run of afterwards appears without a reload."""
    frail.ended("hello", name="before")
    window = visit("/runs", at=frail, failures=True)
    window.row("hello")
    frail.nats.kill()
    window.page.get_by_role("alert").get_by_text("NATS").wait_for()
    window.row("hello")
    frail.nats.start()
    expect(window.page.get_by_role("alert").get_by_text("NATS")).to_have_count(0)
    frail.until_ready()
    frail.submit("printing")
    window.row("printing")


def test_the_gateway_is_restarted(frail: House, visit: Visiting) -> None:
    """The page says that it is gone, keeps what it shows, and goes on when it is back, without a reload."""
    frail.ended("hello")
    window = visit("/runs", at=frail, failures=True)
    window.row("hello")
    frail.end_gateway()
    window.see(window.t("shell.trouble.gateway"))
    window.row("hello")
    frail.begin_gateway()
    expect(window.page.get_by_text(window.t("shell.trouble.gateway"))).to_have_count(0)
    frail.submit("report")
    window.row("report")


def test_an_open_run_outlives_a_restart_of_the_gateway(frail: House, visit: Visiting) -> None:
    """Its end is seen by the page that had been watching before."""
    run_id = frail.submit("slow", seconds=6)
    frail.until_running(run_id)
    window = visit(f"/runs/{run_id}", at=frail, failures=True)
    window.see(window.t("shared.status.RUNNING"))
    frail.restart_gateway()
    window.see(window.t("shared.status.COMPLETED"))


@pytest.mark.parametrize(
    ("broken", "view", "others"),
    [
        ("**/wheels/history*", "wheels", ["wheels.list"]),
        ("**/stats/watch*", "charts", []),
    ],
)
def test_the_failure_of_a_panel_is_its_own(
    broken: str, view: str, others: list[str], house: House, visit: Visiting
) -> None:
    """A route that answers 500 is told where it is used; the rest of the page stays, and so do the other views."""
    window = visit("/runs", failures=True)
    window.answer(broken, 500, '{"detail": "it broke", "err_id": "ERR-PYOCO-0025"}')
    window.goto(f"/{view}")
    window.see("it broke")
    for other in others:
        window.see(window.t(other))
    house.ended("hello")
    window.goto("/runs")
    window.row("hello")


def test_a_list_that_cannot_be_read_says_why_and_can_be_tried_again(house: House, visit: Visiting) -> None:
    """The button reads it anew."""
    house.ended("hello")
    window = visit("/workers", failures=True)
    window.see("w1")
    window.page.route(
        "**/runs?*", lambda route: route.fulfill(status=500, json={"detail": "it broke", "err_id": "ERR-PYOCO-0025"})
    )
    window.goto("/runs")
    window.see("it broke")
    window.page.unroute("**/runs?*")
    window.click(window.t("shell.retry"))
    window.row("hello")
