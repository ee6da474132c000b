"""axe-core finds nothing serious: in any view, in both languages, light and dark, with and without anything to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.access import problems
from tests.browser.conftest import Visiting
from tests.browser.house import House, house_in
from tests.browser.scene import Scene
from tests.browser.views import VIEWS
from tests.browser.visit import PHONE, Language, Scheme


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_axe_finds_nothing_serious(language: Language, scheme: Scheme, scene: Scene, visit: Visiting) -> None:
    """In a house with something of everything."""
    window = visit("/runs", at=scene.house, language=language, scheme=scheme)
    found: dict[str, list[str]] = {}
    for view in VIEWS:
        window.goto(view.path(scene))
        view.is_drawn(window, scene)
        found[view.name] = problems(window.page)
    assert found == {view.name: [] for view in VIEWS}


def test_axe_finds_nothing_serious_on_a_phone(scene: Scene, visit: Visiting) -> None:
    """Tables are cards there; and nothing is wider than the screen."""
    window = visit("/runs", at=scene.house, size=PHONE)
    found: dict[str, list[str]] = {}
    wide: list[str] = []
    for view in VIEWS:
        window.goto(view.path(scene))
        view.is_drawn(window, scene)
        found[view.name] = problems(window.page)
        if window.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(view.name)
    assert (found, wide) == ({view.name: [] for view in VIEWS}, [])


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway on the first day: no run, no worker, no wheel."""
    with house_in(tmp_path_factory.mktemp("empty")) as made:
        yield made


@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_empty_house_tells_what_to_do(language: Language, empty: House, visit: Visiting) -> None:
    """Each list says that it is empty, and axe finds nothing serious."""
    window = visit("/runs", at=empty, language=language)
    found: dict[str, list[str]] = {}
    for said in ("runs.none_yet", "workers.empty", "wheels.empty", "letters.empty", "charts.throughput_empty"):
        view = said.split(".")[0]
        window.goto(f"/{view}")
        window.see(window.t(said))
        found[view] = problems(window.page)
    assert not any(found.values()), found
