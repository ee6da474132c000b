"""The view of the supervision trees."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visiting
from tests.browser.fragile_worker import wish_for
from tests.browser.house import House
from tests.browser.scene import FRAGILE
from tests.browser.visit import Visit

BAR_SEC = 1.0


@pytest.fixture(scope="module")
def wish(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A worker `frail`, with a run in flight; its ticker crashes when this file appears."""
    file = tmp_path_factory.mktemp("wish") / "crash"
    program = (sys.executable, str(FRAGILE), str(file))
    worker = house.start_worker("frail", tags="frail", program=program, PYOCO_ACK_PROGRESS_INTERVAL_SEC="0.1")
    house.until_running(house.submit("slow", tag="frail"))
    yield file
    worker.kill()


def process(window: Visit, name: str) -> Locator:
    """The part of the page that shows this process."""
    return window.page.get_by_role("region", name=name, exact=True)


def actor(window: Visit, of: str, name: str) -> Locator:
    """The line of an actor."""
    named = window.page.get_by_text(name, exact=True)
    return process(window, of).locator(".actor-row").filter(has=named)


def restarts(house: House, of: str, actor: str) -> int:
    """How often it was restarted, as the API says."""

    def walk(found: dict[str, object]) -> Iterator[dict[str, object]]:
        yield found
        for child in found["children"]:  # type: ignore[attr-defined]
            yield from walk(child)

    [tree] = [each["tree"] for each in house.http.get("/actors").json() if each["process"] == of]
    return next(int(str(each["restarts"])) for each in walk(tree) if each["name"] == actor)


def test_an_actor_is_restarted_and_seen_again(house: House, visit: Visiting) -> None:
    """The page asks first, and shows the new life without being asked."""
    window = visit("/house")
    before = restarts(house, "w1", "ticker")
    window.click(window.t("house.restart_label", actor="ticker"), process(window, "w1"))
    window.click(window.t("house.restart"), window.page.get_by_role("dialog"))
    window.see(window.t("house.restart_done", actor="ticker"))
    expect(actor(window, "w1", "ticker")).to_contain_text(f"{window.t('house.restarts')} {before + 1}")
    assert restarts(house, "w1", "ticker") == before + 1


def test_a_crash_is_seen_within_a_second(wish: Path, visit: Visiting) -> None:
    """From the crash to the eye; the quickest of three, as other tests share the machine."""
    window = visit("/house")
    window.see("frail")
    seen: list[float] = []
    for number in range(1, 4):
        why = f"broken on purpose, time {number}"
        wish_for(wish, why)
        while wish.exists():
            time.sleep(0.005)  # another process removes it as it crashes, and tells nobody
        crashed = time.monotonic()
        window.see(why, process(window, "frail"))
        seen.append(time.monotonic() - crashed)
    print(f"a crash was on the page after {', '.join(f'{each:.2f} s' for each in seen)}")
    assert min(seen) < BAR_SEC
