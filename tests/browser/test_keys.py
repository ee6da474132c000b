"""The page before a gateway that asks for API keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visiting
from tests.browser.house import House, house_in
from tests.browser.visit import Visit
from tests.integration.gateway_client import client_of, good
from tests.integration.pyoco_programs import admin


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house whose gateway asks for keys."""
    with house_in(tmp_path_factory.mktemp("locked"), PYOCO_HTTP_AUTH_MODE="api_key") as made:
        yield made


def key_of(house: House, tenant: str, *more: str) -> str:
    """A new key, as an administrator makes one."""
    return str(admin(house.nats.url, "create", "--tenant", tenant, *more, cwd=Path(house.place))["api_key"])


def enter(window: Visit, key: str) -> None:
    """Type it into the dialog."""
    window.page.get_by_label(window.t("shell.key.label"), exact=True).fill(key)
    window.click(window.t("shell.key.use"))


def test_a_wrong_key_is_refused_and_the_right_one_opens_the_page(locked: House, visit: Visiting) -> None:
    """The view goes on by itself, and shows the runs of the key's tenant alone."""
    mine, other = key_of(locked, "mine"), key_of(locked, "other")
    for flow, key in (("of-mine", mine), ("of-other", other)):
        with client_of(locked.url, **{"X-API-Key": key}) as http:
            good(http.post("/runs", json={"flow_name": flow}))
    window = visit("/runs", at=locked, failures=True)
    window.see(window.t("shell.key.needed"))
    enter(window, "pyoco_0123456789abcdef.nobody-has-made-this-key")
    window.see(window.t("shell.key.refused"))
    enter(window, mine)
    window.see("of-mine")
    expect(window.page.get_by_text("of-other")).to_have_count(0)
    expect(window.page.get_by_role("dialog")).to_have_count(0)


def test_a_key_is_kept_for_the_tab_and_not_for_the_browser(locked: House, visit: Visiting) -> None:
    """A reload asks for nothing; another tab does."""
    window = visit("/runs", at=locked, failures=True)
    enter(window, key_of(locked, "kept"))
    window.see(window.t("runs.none_yet"))
    window.page.reload()
    window.see(window.t("runs.none_yet"))
    second = window.page.context.new_page()
    second.goto(locked.url)
    second.get_by_text(window.t("shell.key.needed")).first.wait_for()


def test_a_revoked_key_is_told_and_another_one_goes_on(locked: House, visit: Visiting) -> None:
    """On an open page, without a reload."""
    first = key_of(locked, "moved")
    second = key_of(locked, "moved")
    window = visit("/runs", at=locked, failures=True)
    enter(window, first)
    window.see(window.t("runs.none_yet"))
    admin(locked.nats.url, "revoke", "--key-id", first.removeprefix("pyoco_").split(".")[0], cwd=locked.place)
    window.goto("/workers")
    window.see(window.t("shell.key.wrong"))
    enter(window, second)
    window.goto("/runs")
    window.see(window.t("runs.none_yet"))


def test_what_is_for_admins_says_so(locked: House, visit: Visiting) -> None:
    """A tenant's key shows no trees and no dead letters; the page asks for no other key by itself."""
    window = visit("/runs", at=locked, failures=True)
    enter(window, key_of(locked, "small"))
    window.see(window.t("runs.none_yet"))
    for view in ("house", "letters"):
        window.goto(f"/{view}")
        window.see(window.t(f"{view}.no_admin"))


def test_an_admins_key_shows_the_trees(locked: House, visit: Visiting) -> None:
    """And so its restart buttons."""
    window = visit("/runs", at=locked, failures=True)
    enter(window, key_of(locked, "ops", "--admin"))
    window.goto("/house")
    window.see(window.t("house.restart"))
