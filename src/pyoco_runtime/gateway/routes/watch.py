"""GET /runs/{id}/watch and GET /runs/watch: what happens, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from attrs import frozen
from quart import Blueprint, Response, request

from pyoco_runtime.errors import Dropped, NatsUnavailable, RunNotFound
from pyoco_runtime.gateway.caller import caller
from pyoco_runtime.gateway.exchange import query_of
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.gateway.problems import detail_of
from pyoco_runtime.gateway.run_list import RunList, filter_from
from pyoco_runtime.gateway.run_view import summary, whole_run
from pyoco_runtime.gateway.sse import LONGEST_SEC, STOPPING, Patience, event, streaming
from pyoco_runtime.gateway.waits import Waits
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.progress import Graph
from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.run_keeper import may_see


def watch_routes(parts: GatewayParts, runs: RunList, waits: Waits) -> Blueprint:
    """Streams of one run, and of the list."""
    routes = Blueprint("watch", __name__)

    @routes.get("/runs/<run_id>/watch")
    async def watch_run(run_id: str) -> Response:
        query = query_of(request.query_string)
        wish = RunWish(
            run_id=run_id,
            caller=caller(),
            include=query.texts("include"),
            since=query.number("since"),
            seen=_last_event_id(),
            timeout_sec=query.whole("timeout_sec", 60, 1, LONGEST_SEC),
        )
        await parts.keeper.get(run_id, wish.caller)  # a 404 is told before the stream begins
        return streaming(parts.streams.counted(caller(), _one_run(parts, waits, wish)))

    @routes.get("/runs/watch")
    async def watch_runs() -> Response:
        query = query_of(request.query_string)
        runs.check_fresh()
        wanted = filter_from(query, caller())
        timeout_sec = query.whole("timeout_sec", LONGEST_SEC, 1, LONGEST_SEC)
        events = _all_runs(parts, wanted, _last_event_id(), timeout_sec)
        return streaming(parts.streams.counted(caller(), events))

    return routes


@frozen(kw_only=True)
class RunWish:
    """What the watcher of a run asked for."""

    run_id: str
    caller: Principal | None
    include: frozenset[str]
    since: float | None
    seen: int | None
    """The revision of the last event that it got from an earlier stream."""
    timeout_sec: float

    def is_wanted(self, snapshot: RunSnapshot) -> bool:
        """Whether it is new enough."""
        return self.since is None or (snapshot.updated_at or 0.0) >= self.since


async def _one_run(parts: GatewayParts, waits: Waits, wish: RunWish) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, wish.timeout_sec)
    telling = _Telling(parts, waits, wish)
    with parts.runs.following_run(wish.run_id) as follower:
        # read after the following has begun: nothing falls between the two
        try:
            stored = await parts.keeper.get(wish.run_id, wish.caller)
        except (NatsUnavailable, RunNotFound) as error:  # since the route has looked; its answer has begun
            yield event("end", {"reason": detail_of(error)})
            return
        seen, latest = stored.revision, stored.snapshot
        if wish.is_wanted(latest) and wish.seen != seen:
            yield telling.snapshot(latest, seen)
        while not patience.is_over:
            news = await patience.next(follower.next)
            if news is None:
                if not patience.is_over:
                    yield telling.heartbeat(latest)
                continue
            if news.after is None or not may_see(wish.caller, news.after.tenant_id):
                return  # it was removed
            if news.snapshot is not None and news.revision > seen:
                seen, latest = news.revision, news.snapshot
                if wish.is_wanted(latest):
                    yield telling.snapshot(latest, seen)
                    patience.spoke()
    if patience.is_closing:
        yield event("end", STOPPING)


class _Telling:
    """What one watcher of a run is told; the graph, which may be large, only when he does not have it yet."""

    def __init__(self, parts: GatewayParts, waits: Waits, wish: RunWish) -> None:
        self._clock = parts.clock
        self._waits = waits
        self._wish = wish
        self._graph: Graph | None = None
        self._has_told = False

    def snapshot(self, snapshot: RunSnapshot, revision: int) -> bytes:
        """The run as it is now."""
        shown = whole_run(snapshot, self._wish.include)
        if self._has_told and snapshot.graph == self._graph:
            del shown["graph"]
        self._graph, self._has_told = snapshot.graph, True
        return event("snapshot", self._about({"run_id": self._wish.run_id, "snapshot": shown}, snapshot), revision)

    def heartbeat(self, latest: RunSnapshot) -> bytes:
        """Nothing is new of the run; what it waits for may be."""
        return event("heartbeat", self._about({"run_id": self._wish.run_id}, latest))

    def _about(self, data: dict[str, Any], snapshot: RunSnapshot) -> dict[str, Any]:
        return {**data, "ts": self._clock(), "waiting": self._waits.of(snapshot)}


async def _all_runs(
    parts: GatewayParts, wanted: RunFilter, seen: int | None, timeout_sec: float
) -> AsyncIterator[bytes]:
    patience = Patience(parts.closing, timeout_sec)
    with parts.runs.following(lambda news: _concerns(news, wanted), after_revision=seen) as follower:
        # who comes back keeps its place until it was told what it has missed
        yield event("ready", _position(parts), parts.runs.index.revision if seen is None else None)
        try:
            while not patience.is_over:
                news = await patience.next(follower.next)
                if news is not None:
                    yield _change(news, wanted)
                    patience.spoke()
                elif not patience.is_over:
                    yield event("heartbeat", _position(parts))
        except Dropped as error:
            yield event("dropped", {"reason": str(error)}, parts.runs.index.revision)
            return
    if patience.is_closing:
        yield event("end", STOPPING)


def _position(parts: GatewayParts) -> dict[str, Any]:
    behind = parts.runs.behind
    return {
        "revision": parts.runs.index.revision,
        "behind": None if behind is None else behind.why,
        "ts": parts.clock(),
    }


def _concerns(news: RunNews, wanted: RunFilter) -> bool:
    return any(run is not None and wanted.matches(run) for run in (news.before, news.after))


def _change(news: RunNews, wanted: RunFilter) -> bytes:
    """A run of the list as it is now, or the word that it is in the list no more."""
    if news.after is not None and news.is_listed and wanted.matches(news.after):
        return event("run", summary(news.after), news.revision)
    return event("gone", {"run_id": news.run_id}, news.revision)


def _last_event_id() -> int | None:
    found = request.headers.get("Last-Event-ID", "")
    return int(found) if found.isascii() and found.isdigit() and len(found) < 19 else None
