"""What all tests of this folder share: one house, one browser, and a window for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import chromium, found
from tests.browser.house import House, house_in
from tests.browser.scene import Scene, prepare
from tests.browser.visit import PATIENCE_MS, Visit, visiting

Visiting = Callable[..., Visit]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all tests of this folder, so that they share the house and the browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))


# Of the package and not of the session: while Playwright's sync API lives its event loop counts as running in this
# thread, and tests of other folders could not start theirs.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Runs for all tests of this folder."""
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as started:
        yield started


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway and a worker, for all tests that leave them as they are."""
    found()  # before anything is started
    with house_in(tmp_path_factory.mktemp("house")) as made:
        made.start_worker("w1")
        made.until_worker("w1")
        yield made


@pytest.fixture
def visit(browser: Browser, house: House) -> Iterator[Visiting]:
    """Opens windows; at the end of the test each is checked for complaints of the browser."""
    with ExitStack() as windows:

        def open_window(path: str = "/runs", at: House | None = None, **how: Any) -> Visit:
            window = windows.enter_context(visiting(browser, (at or house).url, **how))
            return window.open(path)

        yield open_window


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A house with something of everything, which no test changes."""
    found()
    with house_in(tmp_path_factory.mktemp("scene")) as made:
        yield prepare(made)
