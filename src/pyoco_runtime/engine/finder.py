"""Which flow a job means: the one of its flow.yaml, or the one that the user's resolver has under its name."""

from __future__ import annotations

from attrs import frozen
from pyoco.core.models import Flow

from pyoco_runtime.engine.driver import NoSuchFlow
from pyoco_runtime.engine.flow_build import build_flow
from pyoco_runtime.engine.flow_yaml import check_flow_yaml
from pyoco_runtime.engine.resolver import Resolver
from pyoco_runtime.errors import UserError
from pyoco_runtime.model.job import Job
from pyoco_runtime.wording import quoted


@frozen
class Finder:
    """Finds flows for this worker."""

    resolver: Resolver
    callable_allow: tuple[str, ...] = ()
    """Modules that a flow.yaml may name as callables; empty allows all."""

    def __call__(self, job: Job) -> Flow:
        """The flow of the job. Raises NoSuchFlow, InvalidFlowFile, UserError, and whatever the resolver raises."""
        if job.workflow_yaml:
            return build_flow(check_flow_yaml(job.workflow_yaml), job.flow_name, self.callable_allow)
        try:
            flow = self.resolver(job.flow_name)
        except KeyError as error:
            why = "" if error.args == (job.flow_name,) else f" (the flow resolver raised KeyError: {error})"
            raise NoSuchFlow(f"this worker has no flow {quoted(job.flow_name)}{why}") from error
        if not isinstance(flow, Flow):
            raise UserError(
                f"the flow resolver returned {type(flow).__name__} for {quoted(job.flow_name)}, not a pyoco Flow:"
                " return the Flow, or raise KeyError for a name that it does not have"
            )
        return flow
