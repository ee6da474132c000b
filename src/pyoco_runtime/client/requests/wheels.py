"""Requests about wheels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyoco_runtime.client.answers import Wheel, WheelDeleted, WheelEvent
from pyoco_runtime.client.reading import json_list, json_object
from pyoco_runtime.client.request import Again, Request, query_of, segment
from pyoco_runtime.client.upload import Progress, Upload


def list_wheels() -> Request[list[Wheel]]:
    """GET /wheels."""
    return Request(method="GET", path="/wheels", read=json_list)


def list_wheel_history(limit: int | None, wheel_name: str | None, action: str | None) -> Request[list[WheelEvent]]:
    """GET /wheels/history."""
    query = query_of(limit=limit, wheel_name=wheel_name, action=action)
    return Request(method="GET", path="/wheels/history", query=query, read=json_list)


def upload_wheel(
    filename: str, data: bytes | Path, replace: bool, tags: Sequence[str] | None, on_progress: Progress | None
) -> Request[Wheel]:
    """POST /wheels: a second time it would be a version conflict."""
    named = ",".join(tag for tag in (str(each).strip() for each in tags or ()) if tag)
    fields = {"replace": "true" if replace else "false", **({"tags": named} if named else {})}
    upload = Upload(
        name="wheel",
        filename=filename,
        media="application/octet-stream",
        data=data,
        fields=fields,
        on_progress=on_progress,
    )
    return Request(method="POST", path="/wheels", upload=upload, read=json_object, again=Again.UNSENT)


def delete_wheel(wheel_name: str) -> Request[WheelDeleted]:
    """DELETE /wheels/{name}."""
    return Request(
        method="DELETE",
        path=f"/wheels/{segment('wheel_name', wheel_name)}",
        read=json_object,
        gone_is={"name": wheel_name, "deleted": True},
    )
