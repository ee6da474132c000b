"""Requests about runs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pyoco_runtime.client.answers import Accepted, BatchResult, Run, RunPage, RunTasks, Submission
from pyoco_runtime.client.reading import json_object, json_page
from pyoco_runtime.client.request import Again, Request, json_body, query_of, segment
from pyoco_runtime.client.upload import Upload

JSON = {"content-type": "application/json"}


def submit_run(
    flow_name: str,
    params: dict[str, Any] | None,
    tag: str | None,
    tags: list[str] | None,
    idempotency_key: str | None,
) -> Request[Accepted]:
    """POST /runs."""
    asked: dict[str, Any] = {"flow_name": flow_name, "params": params or {}}
    if tag is not None:
        asked["tag"] = tag
    if tags is not None:
        asked["tags"] = tags
    return Request(
        method="POST",
        path="/runs",
        headers={**JSON, **_key(idempotency_key)},
        content=json_body(asked),
        read=json_object,
        again=Again.KEYED,
    )


def submit_batch(items: Sequence[Submission], idempotency_key: str | None) -> Request[BatchResult]:
    """POST /runs/batch."""
    return Request(
        method="POST",
        path="/runs/batch",
        headers={**JSON, **_key(idempotency_key)},
        content=json_body({"runs": list(items)}),
        read=json_object,
        again=Again.KEYED,
    )


def submit_run_yaml(
    workflow_yaml: str, flow_name: str, tag: str | None, idempotency_key: str | None
) -> Request[Accepted]:
    """POST /runs/yaml."""
    fields = {"flow_name": flow_name} if tag is None else {"flow_name": flow_name, "tag": tag}
    upload = Upload(
        name="workflow",
        filename="flow.yaml",
        media="application/x-yaml",
        data=workflow_yaml.encode(),
        fields=fields,
    )
    return Request(
        method="POST",
        path="/runs/yaml",
        headers=_key(idempotency_key),
        upload=upload,
        read=json_object,
        again=Again.KEYED,
    )


def get_run(run_id: str, include: str | None = None) -> Request[Run]:
    """GET /runs/{id}."""
    return Request(method="GET", path=_path(run_id), query=query_of(include=include), read=json_object)


def get_tasks(run_id: str) -> Request[RunTasks]:
    """GET /runs/{id}/tasks."""
    return Request(method="GET", path=f"{_path(run_id)}/tasks", read=json_object)


def list_runs(
    status: str | None,
    flow: str | None,
    tag: str | None,
    full: bool,
    limit: int | None,
    updated_after: float | None = None,
    cursor: str | None = None,
    workflow_yaml_sha256: str | None = None,
) -> Request[RunPage]:
    """GET /runs; a plain list becomes a page."""
    query = query_of(
        status=status,
        flow=flow,
        tag=tag,
        include="full" if full else None,
        limit=limit,
        updated_after=updated_after,
        cursor=cursor,
        workflow_yaml_sha256=workflow_yaml_sha256,
    )
    return Request(method="GET", path="/runs", query=query, read=json_page)


def cancel_run(run_id: str, reason: str | None) -> Request[Run]:
    """POST /runs/{id}/cancel: as often as you like."""
    return Request(
        method="POST",
        path=f"{_path(run_id)}/cancel",
        headers={} if reason is None else JSON,
        content=None if reason is None else json_body({"reason": reason}),
        read=json_object,
    )


def watch_run(
    run_id: str,
    include_records: bool = False,
    since: float | None = None,
    timeout_sec: int | None = None,
    last_event_id: str | None = None,
) -> Request[None]:
    """GET /runs/{id}/watch."""
    include = "records" if include_records else None
    return _stream(f"{_path(run_id)}/watch", last_event_id, include=include, since=since, timeout_sec=timeout_sec)


def watch_list(
    status: str | None,
    flow: str | None,
    tag: str | None,
    updated_after: float | None,
    workflow_yaml_sha256: str | None,
    last_event_id: str | None = None,
) -> Request[None]:
    """GET /runs/watch."""
    return _stream(
        "/runs/watch",
        last_event_id,
        status=status,
        flow=flow,
        tag=tag,
        updated_after=updated_after,
        workflow_yaml_sha256=workflow_yaml_sha256,
    )


def _stream(path: str, last_event_id: str | None, **query: str | float | None) -> Request[None]:
    seen = {} if last_event_id is None else {"last-event-id": last_event_id}
    headers = {"accept": "text/event-stream", "cache-control": "no-store", **seen}
    return Request(method="GET", path=path, query=query_of(**query), headers=headers, read=lambda _: None)


def _path(run_id: str) -> str:
    return f"/runs/{segment('run_id', run_id)}"


def _key(given: str | None) -> dict[str, str]:
    return {"idempotency-key": uuid.uuid4().hex if given is None else given}
