"""What axe-core says about a page: whether people who cannot see, or cannot use a mouse, can use it."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types
from playwright.sync_api import Page

GRAVE = ("serious", "critical")


def problems(page: Page) -> list[str]:
    """The serious and critical ones, each with where it is and what axe says."""
    found = Axe().run(page).response["violations"]
    return [_said(rule, node) for rule in found if rule["impact"] in GRAVE for node in rule["nodes"]]


def _said(rule: dict[str, Any], node: dict[str, Any]) -> str:
    why = "; ".join(each["message"] for each in (*node["any"], *node["all"], *node["none"]))
    return f"{rule['id']} ({rule['impact']}) at {node['target']}: {why} -- {node['html'][:160]}"
