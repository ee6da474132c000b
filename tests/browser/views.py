"""Every view of the page, by the name of its picture: where it is, and what is to be read once it is drawn."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from tests.browser.scene import Scene
from tests.browser.visit import Visit


@frozen
class View:
    """One view, or one look at it."""

    name: str
    path: Callable[[Scene], str]
    is_drawn: Callable[[Visit, Scene], object]


VIEWS = (
    View("runs", lambda _: "/runs", lambda visit, scene: visit.see(scene.running[:8])),
    View("run", lambda scene: f"/runs/{scene.report}", lambda visit, _: visit.see("summarise")),
    View("failed-run", lambda scene: f"/runs/{scene.failed}", lambda visit, _: visit.see("4711")),
    View("loop", lambda scene: f"/runs/{scene.looping}", lambda visit, _: visit.see("polish")),
    View("switch", lambda scene: f"/runs/{scene.switching}", lambda visit, _: visit.see("by_sea")),
    View("waiting-run", lambda scene: f"/runs/{scene.waiting}", lambda visit, _: visit.see("night")),
    View("workers", lambda _: "/workers", lambda visit, _: visit.see("eu-worker-1")),
    View("wheels", lambda _: "/wheels", lambda visit, _: visit.see("tools-1.0-py3-none-any.whl")),
    View("house", lambda _: "/house", lambda visit, _: visit.see("ticker")),
    View("charts", lambda _: "/charts", lambda visit, _: visit.see("import_orders")),
    View("letters", lambda _: "/letters", lambda visit, _: visit.see("there_is_no_such_flow")),
)
