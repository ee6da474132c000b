"""A job: the message on the work queue that asks for one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from pyoco_runtime.model.run import NOTHING


@frozen(kw_only=True)
class Job:
    """What a worker needs in order to execute a run."""

    run_id: str
    flow_name: str
    tag: str
    submitted_at: float
    tags: tuple[str, ...] = ()
    params: Mapping[str, Any] = NOTHING
    tenant_id: str | None = None
    api_key_id: str | None = None
    workflow_yaml: str | None = None
    workflow_yaml_sha256: str | None = None
    workflow_yaml_bytes: int | None = None
    snapshot_revision: int | None = None
    """Of the snapshot that says just what this job says (ours): a worker may claim the run over it without a look."""
    extra: Mapping[str, Any] = NOTHING


@frozen
class InvalidJob:
    """A message on the work queue that is no job."""

    problem: str
    """What is wrong with it, for the person who sent it."""
    payload: bytes
    run_id: str | None = None
    """If that much could be read."""
    flow_name: str | None = None
