"""GET /runs, from the request to the answer."""

from __future__ import annotations

from typing import Any

import anyio

from pyoco_runtime.errors import InvalidQuery, NatsUnavailable, RunNotFound
from pyoco_runtime.gateway.exchange import Ask, Reply, as_json, behind_headers
from pyoco_runtime.gateway.query import Query
from pyoco_runtime.gateway.run_view import ALL, summary, whole_run
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_summary import RunSummary
from pyoco_runtime.ports import Link
from pyoco_runtime.run_board import RunBoard
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.submitter import Submitter

STATUSES = tuple(RunStatus)
CATCH_UP_SEC = 0.2
PAGED = ("updated_after", "cursor", "workflow_yaml_sha256")


def filter_from(query: Query, caller: Principal | None) -> RunFilter:
    """Which runs are asked for. Raises InvalidQuery."""
    query = query.wrong_is(InvalidQuery)
    status = query.choice("status", STATUSES)
    return RunFilter(
        status=None if status is None else RunStatus(status),
        flow=query.text("flow"),
        tag=query.text("tag"),
        sha256=query.text("workflow_yaml_sha256"),
        tenant=caller.tenant_id if caller else None,
        updated_after=query.number("updated_after"),
    )


class RunList:
    """Lists come from the index; whole snapshots, if they are asked for, one by one from where they are stored."""

    def __init__(self, board: RunBoard, keeper: RunKeeper, submitter: Submitter, link: Link) -> None:
        self._board = board
        self._keeper = keeper
        self._submitter = submitter
        self._link = link

    async def page(self, ask: Ask) -> Reply:
        """GET /runs."""
        self.check_fresh()
        query = ask.query.wrong_is(InvalidQuery)
        wanted = filter_from(query, ask.caller)
        limit = query.whole("limit", 50, 1, 200)
        await self._catch_up()
        page = self._board.index.query(wanted, limit, query.text("cursor"))
        items = [summary(run) for run in page.runs]
        if not query.texts("include").isdisjoint(ALL):
            items = await self._whole(page.runs, ask)
        headers = self.headers()
        if page.is_partial:
            headers["x-pyoco-partial"] = "true"
        if all(query.text(name) is None for name in PAGED):
            return as_json(items, headers=headers)
        return as_json({"items": items, "next_cursor": page.next_cursor, "partial": page.is_partial}, headers=headers)

    async def _catch_up(self) -> None:
        """Who submits and then lists sees the run: the index learns of it a moment after the answer was given."""
        written = max(self._submitter.last_revision, self._keeper.last_revision)
        if self._board.index.revision < written:
            with anyio.move_on_after(CATCH_UP_SEC):
                await self._board.heard_of(written)

    def check_fresh(self) -> None:
        """Lists do not answer from memory while NATS is away. Raises NatsUnavailable."""
        if not self._link.is_up:
            raise NatsUnavailable(self._link.problem)

    def headers(self) -> dict[str, str]:
        """What is said along with an answer while the index catches up."""
        return behind_headers(self._board.behind)

    async def _whole(self, runs: tuple[RunSummary, ...], ask: Ask) -> list[dict[str, Any]]:
        found = []
        for run in runs:
            try:
                found.append(whole_run((await self._keeper.get(run.run_id, ask.caller)).snapshot, ALL))
            except RunNotFound:
                continue  # removed since
        return found
