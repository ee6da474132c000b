"""What those who follow runs are told."""

from __future__ import annotations

from attrs import frozen

from pyoco_runtime.model.run import RunSnapshot
from pyoco_runtime.model.run_summary import RunSummary


@frozen(kw_only=True)
class RunNews:
    """What has become of a run."""

    run_id: str
    revision: int
    before: RunSummary | None
    """As it was known; None if it was not."""
    after: RunSummary | None
    """As it is; None if it is gone."""
    snapshot: RunSnapshot | None = None
    """The whole of `after`; only for those who follow this one run."""
    is_listed: bool = True
    """False for a run that is too old for the index: lists do not show it."""
    is_late: bool = False
    """It was found to be gone; nobody knows at which revision, so that it carries the latest that was heard of."""
