"""Debian's Chromium, headless, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

MISSING = (
    "there is no chromium on this machine: `make browser` installs it (Debian: apt-get install chromium fonts-noto-cjk)"
)


def found() -> str:
    """Where Chromium is; without one the test is skipped, and in CI it fails."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING, pytrace=False)
        pytest.skip(MISSING)
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for a block."""
    path = found()
    with sync_playwright() as playwright:
        # no sandbox: it needs rights that containers do not have, and the pages are our own
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
