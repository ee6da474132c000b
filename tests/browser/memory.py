"""What a page costs: its JavaScript heap and its DOM, as Chromium counts them."""

from __future__ import annotations

from attrs import frozen
from playwright.sync_api import CDPSession, Page


@frozen
class Sample:
    """After a garbage collection."""

    heap_mb: float
    nodes: int
    """In the document or kept alive by a script."""
    listeners: int

    def __str__(self) -> str:
        return f"{self.heap_mb:6.2f} MB heap, {self.nodes:6} DOM nodes, {self.listeners:5} listeners"


class Meter:
    """Counts what one page holds."""

    def __init__(self, page: Page) -> None:
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.send("Performance.enable")
        self._cdp.send("HeapProfiler.enable")

    def sample(self) -> Sample:
        """Collect garbage and count."""
        self._cdp.send("HeapProfiler.collectGarbage")
        found = {each["name"]: each["value"] for each in self._cdp.send("Performance.getMetrics")["metrics"]}
        return Sample(found["JSHeapUsedSize"] / 1e6, int(found["Nodes"]), int(found["JSEventListeners"]))
