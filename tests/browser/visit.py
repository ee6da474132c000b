"""A person before the page: opens views, reads and clicks, and minds every complaint of the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, Route

PATIENCE_MS = 20_000  # for anything that must be seen; two cores are shared by many
DESK = (1280, 800)
PHONE = (390, 844)
ZONE = "Asia/Tokyo"

Language = Literal["en", "ja"]
Scheme = Literal["light", "dark"]

NETWORK = re.compile(r"^Failed to load resource: ")
"""What Chromium itself writes about an answer of 4xx, 5xx or none: it cannot be turned off."""


class Visit:
    """One browser window on the dashboard."""

    def __init__(self, page: Page, url: str, language: Language) -> None:
        self.page = page
        self.url = url
        self._texts = texts(url, language)
        self.complaints: list[str] = []
        self.network: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", self._hear_error)

    def open(self, path: str = "/runs") -> Visit:
        """Go to a view, by a fresh load of the page."""
        self.page.goto(f"{self.url}/#{path}")
        self.page.reload()  # a change behind the # alone loads nothing
        return self

    def goto(self, path: str) -> Visit:
        """Go to a view within the loaded page, as a link does."""
        self.page.evaluate("path => { location.hash = path }", f"#{path}")
        return self

    def t(self, key: str, **values: object) -> str:
        """The words of the catalogue, in the language of this window: `runs.title` is `ui.runs.title`."""
        return self._texts[f"ui.{key}"].format(**values)

    def see(self, text: str | re.Pattern[str], within: Locator | None = None) -> Locator:
        """Wait until this is to be read."""
        found = (within or self.page).get_by_text(text).filter(visible=True).first
        found.wait_for()
        return found

    def click(self, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        """Press the button of that name."""
        (within or self.page).get_by_role("button", name=name).first.click()

    def row(self, text: str | re.Pattern[str]) -> Locator:
        """The row of a table that has this in it."""
        found = self.page.get_by_role("row").filter(has_text=text).first
        found.wait_for(state="visible")
        return found

    def answer(self, glob: str, status: int, body: str = "{}") -> None:
        """From now on requests like this get that answer instead of the gateway's."""

        def fulfil(route: Route) -> None:
            route.fulfill(status=status, content_type="application/json", body=body)

        self.page.route(glob, fulfil)

    def check_quiet(self) -> None:
        """No error of the page, no breach of its Content-Security-Policy."""
        assert not self.complaints, "\n".join(self.complaints)

    def check_no_failed_request(self) -> None:
        """Every request was answered well."""
        assert not self.network, "\n".join(self.network)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        said = f"{message.type}: {message.text} ({message.location.get('url', '')})"
        (self.network if NETWORK.match(message.text) else self.complaints).append(said)

    def _hear_error(self, error: Error) -> None:
        self.complaints.append(f"uncaught: {error}")


def texts(url: str, language: Language) -> dict[str, str]:
    """The catalogue of the page."""
    found: dict[str, str] = httpx.get(f"{url}/static/messages/{language}.json", trust_env=False).json()
    return found


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    *,
    language: Language = "en",
    scheme: Scheme = "light",
    size: tuple[int, int] = DESK,
    failures: bool = False,
) -> Iterator[Visit]:
    """A window for a block; after it there must be no complaint, and no failed request unless they are expected."""
    context = _context(browser, language, scheme, size)
    try:
        visit = Visit(context.new_page(), url, language)
        yield visit
        visit.check_quiet()
        if not failures:
            visit.check_no_failed_request()
    finally:
        context.close()


def _context(browser: Browser, language: Language, scheme: Scheme, size: tuple[int, int]) -> BrowserContext:
    settings: dict[str, Any] = {"is_mobile": True, "has_touch": True} if size == PHONE else {}
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        locale={"en": "en-GB", "ja": "ja-JP"}[language],
        timezone_id=ZONE,
        color_scheme=scheme,
        reduced_motion="reduce",
        **settings,
    )
    context.set_default_timeout(PATIENCE_MS)
    return context
