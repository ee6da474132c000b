"""The latest news, for those who come back."""

from __future__ import annotations

from collections import deque

from pyoco_runtime.model.run_news import RunNews

CAPACITY = 1024  # about 1 MB; a browser is away for seconds


class NewsLog:
    """Without gaps between the revision that it reaches back to and the latest."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._news: deque[RunNews] = deque()
        self._latest = 0
        self._reach = 0

    def add(self, news: RunNews) -> None:
        """Keep it. One that is not in the order of revisions makes all that came before useless."""
        if news.revision <= self._latest or news.is_late:
            self._latest = max(self._latest, news.revision)
            self._reach = self._latest + 1
            self._news.clear()
            return
        self._latest = news.revision
        self._news.append(news)
        if len(self._news) > self._capacity:
            self._reach = self._news.popleft().revision

    def after(self, revision: int) -> list[RunNews] | None:
        """All news of later revisions; None if nobody knows whether these are all."""
        if not self._reach <= revision <= self._latest:
            return None
        return [news for news in self._news if news.revision > revision]
