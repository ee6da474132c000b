"""Requests about workers."""

from __future__ import annotations

from pyoco_runtime.client.answers import Worker, WorkerHidden
from pyoco_runtime.client.reading import json_list, json_object
from pyoco_runtime.client.request import Request, json_body, query_of, segment


def get_workers(
    scope: str | None, state: str | None, include_hidden: bool | None, limit: int | None
) -> Request[list[Worker]]:
    """GET /workers."""
    query = query_of(scope=scope, state=state, include_hidden=include_hidden, limit=limit)
    return Request(method="GET", path="/workers", query=query, read=json_list)


def patch_worker_hidden(worker_id: str, hidden: bool) -> Request[WorkerHidden]:
    """PATCH /workers/{id}."""
    return Request(
        method="PATCH",
        path=f"/workers/{segment('worker_id', worker_id)}",
        headers={"content-type": "application/json"},
        content=json_body({"hidden": bool(hidden)}),
        read=json_object,
    )
