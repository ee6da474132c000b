"""What a list shows of a run."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, TypeVar

from attrs import frozen

from pyoco_runtime.model.positions import Position
from pyoco_runtime.model.run import RunSnapshot, RunStatus, submission_of

TEXT_LIMIT = 500  # characters of a text in a summary
TAGS_LIMIT = 64

H = TypeVar("H", bound=Hashable)


@frozen(kw_only=True)
class RunSummary:
    """A run without its details: what lists, filters and metrics need."""

    position: Position
    flow_name: str
    tag: str | None
    tags: tuple[str, ...]
    tenant_id: str | None
    api_key_id: str | None
    status: RunStatus
    updated_at: float | None
    heartbeat_at: float | None
    worker_id: str | None
    error: str | None
    workflow_yaml_sha256: str | None
    start_time: float | None
    end_time: float | None
    revision: int
    job_seq: int | None
    """Of a run that is not over: the number of its job on the queue, if a worker has told it."""
    submitted_at: float | None
    """Of a run that is not over: when its job was published, as far as is known."""

    @property
    def run_id(self) -> str:
        """Its id, which is a part of its position."""
        return self.position[1]


class Summarizer:
    """Makes summaries that share what they have in common: flows, tags and workers repeat in most of them."""

    def __init__(self, most: int = 20_000) -> None:
        self._shared: dict[Any, Any] = {}
        self._most = most

    def summary_of(self, snapshot: RunSnapshot, revision: int) -> RunSummary:
        """The summary; texts over 500 characters and tags over 64 are cut, so that its size has a bound."""
        updated_at = instant(snapshot.updated_at)
        heartbeat_at = instant(snapshot.heartbeat_at)
        return RunSummary(
            position=(updated_at or 0.0, snapshot.run_id),
            flow_name=self._text(snapshot.flow_name),
            tag=self._text_or_none(snapshot.tag),
            tags=self._share(tuple(map(self._text, snapshot.tags[:TAGS_LIMIT]))),
            tenant_id=self._share(snapshot.tenant_id),  # whole: two tenants must never look the same
            api_key_id=self._text_or_none(snapshot.api_key_id),
            status=snapshot.status,
            updated_at=updated_at,
            heartbeat_at=updated_at if heartbeat_at == updated_at else heartbeat_at,
            worker_id=self._text_or_none(snapshot.worker_id),
            error=None if snapshot.error is None else cut(snapshot.error),
            workflow_yaml_sha256=self._text_or_none(snapshot.workflow_yaml_sha256),
            start_time=instant(snapshot.start_time),
            end_time=instant(snapshot.end_time),
            revision=revision,
            job_seq=snapshot.attempt.seq if snapshot.attempt and not snapshot.status.is_terminal else None,
            submitted_at=None if snapshot.status.is_terminal else instant(submission_of(snapshot)),
        )

    def _text(self, text: str) -> str:
        return self._share(cut(text))

    def _text_or_none(self, text: str | None) -> str | None:
        return None if text is None else self._share(cut(text))

    def _share(self, value: H) -> H:
        # not sys.intern: what is interned stays for ever in some versions of Python
        if len(self._shared) >= self._most:
            self._shared.clear()
        found: H = self._shared.setdefault(value, value)
        return found


def cut(text: str) -> str:
    """The text as summaries have it."""
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT]


def instant(at: float | None) -> float | None:
    """A timestamp that can be compared; other writers may have stored NaN, or a number that no float holds."""
    if at is None:
        return None
    try:
        found = float(at)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
