"""The pictures of the documentation, made from the real page: PYOCO_SCREENSHOTS=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser.conftest import Visiting
from tests.browser.scene import Scene
from tests.browser.views import VIEWS
from tests.browser.visit import DESK, PHONE, Language, Visit

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "images" / "dashboard"
PAGE = PLACE.parents[1] / "how-to" / "use-the-dashboard.md"
IS_WANTED = os.environ.get("PYOCO_SCREENSHOTS") == "1"
ON_A_PHONE = ("runs", "run")
PICTURES = [
    *((view.name, language, "") for view in VIEWS for language in ("en", "ja")),
    *((name, language, "-phone") for name in ON_A_PHONE for language in ("en", "ja")),
]

SHORTEN = """(root) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
        texts.currentNode.data = texts.currentNode.data.replaceAll(root, "/srv/app");
}"""
"""Where this repository lies is nobody's business: tracebacks show another place."""


def file_of(name: str, language: str, kind: str) -> str:
    """The name of a picture's file."""
    return f"{name}{kind}-{language}.png"


@pytest.mark.skipif(not IS_WANTED, reason="pictures are written with PYOCO_SCREENSHOTS=1 only")
@pytest.mark.parametrize("kind", ["", "-phone"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_pictures_are_taken(language: Language, kind: str, scene: Scene, visit: Visiting) -> None:
    """One of each view, at rest."""
    PLACE.mkdir(parents=True, exist_ok=True)
    window = visit("/runs", at=scene.house, language=language, size=PHONE if kind else DESK)
    for view in VIEWS:
        if (view.name, language, kind) in PICTURES:
            window.goto(view.path(scene))
            view.is_drawn(window, scene)
            settle(window)
            window.page.evaluate(SHORTEN, str(ROOT))
            window.page.screenshot(path=PLACE / file_of(view.name, language, kind), animations="disabled")


def settle(window: Visit) -> None:
    """Wait until two looks in a row are the same, but for running clocks."""
    text = "document.getElementById('main').innerText.replace(/\\\\d+/g, '')"
    before = None
    while (now := window.page.evaluate(text)) != before:
        before = now
        window.page.wait_for_timeout(300)


def test_there_is_a_picture_for_every_view_and_the_page_shows_each_view() -> None:
    """In both languages; and no file that is left over."""
    assert {path.name for path in PLACE.glob("*")} == {file_of(*each) for each in PICTURES}
    shown = PAGE.read_text()
    missing = [view.name for view in VIEWS if f"{file_of(view.name, 'en', '')}" not in shown]
    assert missing == []
