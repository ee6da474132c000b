"""Requests about dead letters."""

from __future__ import annotations

from pyoco_runtime.client.answers import Letter, LetterDeleted, LetterPage, Replayed
from pyoco_runtime.client.reading import json_object
from pyoco_runtime.client.request import Again, Request, query_of


def list_dlq(
    reason: str | None, flow: str | None, tag: str | None, run_id: str | None, limit: int | None, before: int | None
) -> Request[LetterPage]:
    """GET /dlq."""
    query = query_of(reason=reason, flow=flow, tag=tag, run_id=run_id, limit=limit, before=before)
    return Request(method="GET", path="/dlq", query=query, read=json_object)


def get_letter(seq: int) -> Request[Letter]:
    """GET /dlq/{seq}."""
    return Request(method="GET", path=f"/dlq/{seq:d}", read=json_object)


def replay_letter(seq: int) -> Request[Replayed]:
    """POST /dlq/{seq}/replay: each time makes another run."""
    return Request(method="POST", path=f"/dlq/{seq:d}/replay", read=json_object, again=Again.UNSENT)


def drop_letter(seq: int) -> Request[LetterDeleted]:
    """DELETE /dlq/{seq}."""
    return Request(method="DELETE", path=f"/dlq/{seq:d}", read=json_object, gone_is={"seq": seq, "deleted": True})
