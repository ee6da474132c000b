"""POST /runs and its relatives, from the request to the answer."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
from attrs import frozen

from pyoco_runtime.errors import InvalidRequest, NatsUnavailable, PyocoError, WorkflowTooLarge
from pyoco_runtime.gateway.doubts import Doubts, Warnings
from pyoco_runtime.gateway.exchange import Ask, Reply, as_json
from pyoco_runtime.gateway.flow_check import CheckedFlow, FlowCheck
from pyoco_runtime.gateway.problems import detail_of
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.submission import KEY_LIMIT, Submission, flow_name_from, params_from, submission_from, tag_from
from pyoco_runtime.submitter import Accepted, Submitter

BATCH_LIMIT = 1000
QUICK_BYTES = 4096  # a flow.yaml of this size is checked in a millisecond or so: no thread is worth it


@frozen
class WorkflowUpload:
    """The form of POST /runs/yaml."""

    workflow: bytes | None
    flow_name: str | None
    tag: str | None
    has_more: bool = False
    """The file was longer than the limit; the rest was not read."""


class Submissions:
    """Reads what is wanted, has it taken in, and says what became of it."""

    def __init__(
        self, submitter: Submitter, check_flow: FlowCheck, doubts: Doubts, default_tag: str, yaml_max_bytes: int
    ) -> None:
        self._submitter = submitter
        self._check_flow = check_flow
        self._doubts = doubts
        self._default_tag = default_tag
        self._yaml_max_bytes = yaml_max_bytes

    async def one(self, ask: Ask) -> Reply:
        """POST /runs."""
        wanted = submission_from(ask.json(), self._default_tag)
        accepted = await self._submitter.submit(wanted, ask.caller, _key(ask.idempotency_key))
        return _accepted(accepted, self._doubts.about_flow(wanted.flow_name, wanted.tag))

    async def batch(self, ask: Ask) -> Reply:
        """POST /runs/batch: each item by itself; an item that is wrong keeps no other back."""
        body = ask.json()
        items = body.get("runs") if isinstance(body, dict) else body
        if not isinstance(items, list):
            raise InvalidRequest('the body must be {"runs": [...]} with what POST /runs takes in each item')
        if not 1 <= len(items) <= BATCH_LIMIT:
            raise InvalidRequest(f"runs: has {len(items)} items; from 1 to {BATCH_LIMIT} are allowed")
        read = [self._read(item) for item in items]
        wanted = [each for each in read if isinstance(each, Submission)]
        key = _key(ask.idempotency_key)
        done = await self._submitter.submit_all(wanted, ask.caller, key) if wanted else []
        if done and all(isinstance(each, NatsUnavailable) for each in done):
            raise NatsUnavailable(str(done[0]))  # nothing was taken in: the whole request may be sent again
        rest = iter(done)
        results = [_item(next(rest) if isinstance(each, Submission) else each) for each in read]
        taken = [(each, end) for each, end in zip(wanted, done, strict=True) if isinstance(end, Accepted)]
        answer = {"results": results, "accepted": len(taken), "refused": len(results) - len(taken)}
        warnings = self._doubts.about_flows(dict.fromkeys((each.flow_name, each.tag) for each, _ in taken))
        return as_json({**answer, **_warned(warnings)}, headers=_replayed([end for _, end in taken]))

    async def workflow(self, upload: WorkflowUpload, caller: Principal | None, key: str | None) -> Reply:
        """POST /runs/yaml."""
        if upload.workflow is None:
            raise InvalidRequest("workflow: is missing; send the flow.yaml as a file of this name")
        if upload.has_more or len(upload.workflow) > self._yaml_max_bytes:
            raise WorkflowTooLarge(f"a flow.yaml has at most {self._yaml_max_bytes:,} bytes")
        flow_name = flow_name_from(upload.flow_name)
        tag = tag_from(upload.tag, self._default_tag)
        checked = await self._checked(upload.workflow)
        params = params_from(dict(checked.defaults))
        text = upload.workflow.decode()
        wanted = Submission(flow_name=flow_name, params=params, tag=tag, tags=(tag,), workflow_yaml=text)
        accepted = await self._submitter.submit(wanted, caller, _key(key))
        return _accepted(accepted, self._doubts.about_tasks(checked.registered, tag))

    async def _checked(self, workflow: bytes) -> CheckedFlow:
        if len(workflow) <= QUICK_BYTES:
            return self._check_flow(workflow)
        return await anyio.to_thread.run_sync(self._check_flow, workflow)

    def _read(self, item: object) -> Submission | PyocoError:
        try:
            return submission_from(item, self._default_tag)
        except InvalidRequest as error:
            return error


def _accepted(accepted: Accepted, warnings: Warnings) -> Reply:
    body = {"run_id": accepted.run_id, "status": "PENDING", **_warned(warnings)}
    return as_json(body, headers=_replayed([accepted]))


def _replayed(accepted: Sequence[Accepted]) -> dict[str, str]:
    """What is said when every run of the answer was made by an earlier request."""
    is_replay = bool(accepted) and not any(each.is_new for each in accepted)
    return {"idempotent-replayed": "true"} if is_replay else {}


def _warned(warnings: Warnings) -> dict[str, object]:
    return {"warnings": list(warnings)} if warnings else {}


def _item(result: Accepted | PyocoError) -> dict[str, object]:
    if isinstance(result, Accepted):
        return {"run_id": result.run_id, "status": "PENDING"}
    return {"detail": detail_of(result), "err_id": result.err_id, "msg_id": result.msg_id}


def _key(found: str | None) -> str | None:
    if found is None:
        return None
    if not 1 <= len(found) <= KEY_LIMIT or not found.isprintable():
        raise InvalidRequest(f"Idempotency-Key: must have from 1 to {KEY_LIMIT} printable characters")
    return found
