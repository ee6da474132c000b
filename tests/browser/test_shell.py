"""The frame around all views: languages, themes, the keyboard, the policy against foreign content."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House, house_in
from tests.browser.visit import PHONE, Language, texts

VIEWS = ("runs", "workers", "wheels", "house", "charts", "letters")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_page_speaks_the_browsers_language(language: Language, visit: Visiting) -> None:
    """Nobody has to choose; every view is in the navigation."""
    window = visit("/runs", language=language)
    for view in VIEWS:
        expect(window.page.get_by_role("link", name=window.t(f"shell.nav.{view}"), exact=True)).to_be_visible()
    expect(window.page.locator("html")).to_have_attribute("lang", language)


def test_a_chosen_language_is_spoken_at_once_and_remembered(house: House, visit: Visiting) -> None:
    """Without a reload, and after one."""
    window = visit("/workers")
    japanese = texts(house.url, "ja")
    window.page.get_by_label(window.t("shell.language")).select_option("ja")
    heading = window.page.get_by_role("link", name=japanese["ui.shell.nav.workers"], exact=True)
    expect(heading).to_be_visible()
    expect(window.page.get_by_role("link", name=window.t("shell.nav.workers"), exact=True)).to_have_count(0)
    window.page.reload()
    expect(heading).to_be_visible()
    expect(window.page.locator("html")).to_have_attribute("lang", "ja")


def test_the_gateway_may_choose_the_language(tmp_path: Path, visit: Visiting) -> None:
    """PYOCO_DASHBOARD_LANG comes before what the browser wishes."""
    with house_in(tmp_path, PYOCO_DASHBOARD_LANG="en") as english:
        window = visit("/runs", at=english, language="ja")
        expect(window.page.locator("html")).to_have_attribute("lang", "en")
        window.page.close()


def test_a_chosen_theme_is_shown_at_once_and_remembered(visit: Visiting) -> None:
    """Dark on a system that is light."""
    window = visit("/runs", scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = window.page.evaluate(colour)
    window.page.get_by_label(window.t("shell.theme")).select_option("dark")
    dark = window.page.evaluate(colour)
    assert dark != light
    window.page.reload()
    assert window.page.evaluate(colour) == dark


def test_the_first_key_leads_past_the_navigation(visit: Visiting) -> None:
    """Tab and Enter: the skip link, then the content has the focus."""
    window = visit("/runs")
    window.see(window.t("shell.nav.runs"))
    window.page.keyboard.press("Tab")
    expect(window.page.get_by_text(window.t("shell.skip"))).to_be_focused()
    window.page.keyboard.press("Enter")
    expect(window.page.get_by_role("main")).to_be_focused()


def test_on_a_phone_the_navigation_shows_where_one_is(visit: Visiting) -> None:
    """It is wider than the screen, and moves along."""
    window = visit("/runs", size=PHONE)
    window.goto("/letters")
    link = window.page.get_by_role("link", name=window.t("shell.nav.letters"), exact=True)
    expect(link).to_be_in_viewport(ratio=1)
    window.goto("/runs")
    expect(window.page.get_by_role("link", name=window.t("shell.nav.runs"), exact=True)).to_be_in_viewport(ratio=1)


def test_nothing_foreign_may_run_in_the_page(house: House, visit: Visiting) -> None:
    """The policy stands, and the browser keeps to it: an inline script is not executed."""
    policy = httpx.get(house.url, trust_env=False).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    window = visit("/runs")
    window.page.evaluate(
        """() => {
        const script = document.createElement("script");
        script.textContent = "window.foreign = true";
        document.body.append(script);
    }"""
    )
    assert window.page.evaluate("window.foreign") is None
    assert any("Content Security Policy" in each for each in window.complaints)  # so the other tests would see one
    window.complaints.clear()
