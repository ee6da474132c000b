"""A dead letter goes back on the queue, as a new run that names its origin."""

from __future__ import annotations

from attrs import evolve

from pyoco_runtime.errors import InvalidRequest, NotReplayable, RunNotFound
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.dead_letter import DeadLetter
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.submission import Submission, flow_name_from, tag_from
from pyoco_runtime.ports import StoredLetter
from pyoco_runtime.run_keeper import RunKeeper
from pyoco_runtime.submitter import Accepted, Submitter


class Replay:
    """Takes the job from the letter, or, if somebody else wrote it without one, what the run's snapshot still holds."""

    def __init__(self, submitter: Submitter, keeper: RunKeeper) -> None:
        self._submitter = submitter
        self._keeper = keeper

    async def replay(self, stored: StoredLetter, caller: Principal | None) -> Accepted:
        """Submit it again, in the caller's name. Raises NotReplayable, NatsUnavailable."""
        letter = stored.letter
        wanted = _from_job(letter.job) if letter.job else await self._from_run(letter, caller)
        origin = {"replay_of": letter.run_id, "replay_of_letter": stored.seq}
        return await self._submitter.submit(evolve(wanted, extra=origin), caller)

    async def _from_run(self, letter: DeadLetter, caller: Principal | None) -> Submission:
        if letter.run_id is None:
            raise NotReplayable("it was about a message that was no job")
        try:
            run = (await self._keeper.get(letter.run_id, caller)).snapshot
        except RunNotFound as error:
            raise NotReplayable("it carries no job, and its run is gone") from error
        if run.workflow_yaml_sha256 is not None:
            raise NotReplayable("it carries no job, and the flow.yaml of its run is stored nowhere: submit it again")
        return _checked(run.flow_name, run.tag, Submission(flow_name="", params=run.params, tag="", tags=run.tags))


def _from_job(job: Job) -> Submission:
    wanted = Submission(flow_name="", params=job.params, tag="", tags=job.tags, workflow_yaml=job.workflow_yaml)
    return _checked(job.flow_name, job.tag, wanted)


def _checked(flow_name: str, tag: str | None, wanted: Submission) -> Submission:
    """Other writers may have stored what no gateway accepts."""
    try:
        routing = tag_from(tag, "default")
        return evolve(wanted, flow_name=flow_name_from(flow_name), tag=routing, tags=wanted.tags or (routing,))
    except InvalidRequest as error:
        raise NotReplayable(str(error)) from error
