"""Which runs a list shows."""

from __future__ import annotations

from attrs import field, frozen
from attrs.converters import optional

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_summary import RunSummary, cut


@frozen(kw_only=True)
class RunFilter:
    """All that is given must hold; None asks for nothing. Texts are compared as far as summaries hold them."""

    status: RunStatus | None = None
    flow: str | None = field(default=None, converter=optional(cut))
    tag: str | None = field(default=None, converter=optional(cut))
    sha256: str | None = field(default=None, converter=optional(cut))
    tenant: str | None = None
    updated_after: float | None = None
    """Runs of exactly this moment are not shown."""

    def matches(self, run: RunSummary) -> bool:
        """Whether the list shows this run."""
        return (
            (self.tenant is None or run.tenant_id == self.tenant)
            and (self.status is None or run.status is self.status)
            and (self.flow is None or run.flow_name == self.flow)
            and (self.tag is None or run.tag == self.tag)
            and (self.sha256 is None or run.workflow_yaml_sha256 == self.sha256)
            and (self.updated_after is None or run.position[0] > self.updated_after)
        )
