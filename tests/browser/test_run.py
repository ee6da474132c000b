"""One run: its graph, its timeline, its tasks, its log, and what it waits for."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visiting
from tests.browser.house import House
from tests.browser.visit import Visit


def node(window: Visit, task: str) -> Locator:
    """The box of a task in the graph."""
    return window.page.locator(f"svg.graph [data-task='{task}']")


def part(window: Visit, name: str) -> Locator:
    """A panel of the page."""
    return window.page.get_by_role("region", name=window.t(f"run.{name}"))


def test_a_run_is_watched_from_its_start_to_its_end(house: House, visit: Visiting) -> None:
    """Its graph changes colours and words, and nothing moves."""
    run_id = house.submit("report", seconds=1.2)
    window = visit(f"/runs/{run_id}")
    expect(node(window, "summarise")).to_contain_text(window.t("shared.task.PENDING"))
    before = node(window, "summarise").bounding_box()
    expect(node(window, "summarise")).to_contain_text(window.t("shared.task.SUCCEEDED"))
    window.see(window.t("shared.status.COMPLETED"))
    assert node(window, "summarise").bounding_box() == before
    for task in ("fetch", "clean", "summarise"):
        expect(part(window, "timeline").get_by_role("button", name=task)).to_be_visible()


def test_a_task_tells_what_it_got_printed_and_returned(house: House, visit: Visiting) -> None:
    """By a click on its box, and by keyboard."""
    run_id = house.ended("report", region="apac")
    window = visit(f"/runs/{run_id}")
    node(window, "fetch").click()
    window.see("fetching apac")
    node(window, "summarise").focus()
    window.page.keyboard.press("Enter")
    window.see("one row was odd")
    window.see('"rows": 4')


def test_the_log_is_live(house: House, visit: Visiting) -> None:
    """Lines appear while the task that prints them is running."""
    run_id = house.submit("printing", lines=40, seconds=6)
    window = visit(f"/runs/{run_id}")
    node(window, "speak").click()
    window.see("line 1 of 40")
    assert house.run(run_id)["status"] == "RUNNING"
    window.see("line 38 of 40")


def test_a_failed_run_shows_its_error_and_traceback(house: House, visit: Visiting) -> None:
    """The task that failed is chosen from the start."""
    window = visit(f"/runs/{house.ended('failing')}")
    window.see("the amount of order 4711 is not a positive number")
    window.see("Traceback (most recent call last)")
    expect(node(window, "book")).not_to_contain_text(window.t("shared.task.SUCCEEDED"))


def test_loops_and_switches_are_drawn(house: House, visit: Visiting) -> None:
    """With their conditions; a branch that was not taken says so."""
    looping = house.ended("looping", items=[1, 2, 3])
    switching = house.ended("switching", how="sea")
    window = visit(f"/runs/{looping}")
    expect(part(window, "graph")).to_contain_text(window.t("run.loops.foreach"))
    expect(node(window, "polish")).to_contain_text(window.t("shared.task.SUCCEEDED"))
    window.goto(f"/runs/{switching}")
    expect(part(window, "graph")).to_contain_text(window.t("run.switch"))
    expect(node(window, "by_sea")).to_contain_text(window.t("shared.task.SUCCEEDED"))
    expect(node(window, "by_air")).to_contain_text(window.t("run.not_run"))


def test_a_run_that_does_not_move_says_what_it_waits_for(house: House, visit: Visiting) -> None:
    """In one sentence, and the sentence changes with the cause."""
    run_id = house.submit("slow", tag="nobody-here", seconds=0.2)
    window = visit(f"/runs/{run_id}")
    window.see(window.t("shared.waiting.no_worker", tag="nobody-here"))
    house.start_worker("late", tags="nobody-here")
    window.see(window.t("shared.status.COMPLETED"))
    expect(window.page.get_by_text(window.t("shared.waiting.no_worker", tag="nobody-here"))).to_have_count(0)


def test_a_run_is_cancelled_on_its_own_page(house: House, visit: Visiting) -> None:
    """The reason is kept and shown."""
    run_id = house.submit("slow")
    house.until_running(run_id)
    window = visit(f"/runs/{run_id}")
    window.see(window.t("shared.waiting.task", task="wait"))
    window.click(window.t("shared.action.cancel"))
    dialog = window.page.get_by_role("dialog")
    dialog.get_by_label(window.t("runs.cancel.reason")).fill("the customer called")
    window.click(window.t("runs.cancel.yes"), dialog)
    window.see(window.t("shared.status.CANCELLED"))
    window.see("the customer called")


def test_a_run_that_is_not_there_is_told(visit: Visiting) -> None:
    """With a way back."""
    window = visit("/runs/00000000-0000-4000-8000-000000000000", failures=True)
    window.see(window.t("run.not_found"))


def test_a_run_id_is_copied(house: House, visit: Visiting) -> None:
    """Into the clipboard."""
    run_id = house.ended("hello")
    window = visit(f"/runs/{run_id}")
    window.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    window.click(window.t("shell.copy_what", what=window.t("run.run_id")))
    window.page.wait_for_function("id => navigator.clipboard.readText().then((text) => text === id)", arg=run_id)
