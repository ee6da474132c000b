"""What somebody wants to have run, checked, and the snapshot and the job that it becomes."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import NOTHING, RunSnapshot, RunStatus

FLOW_NAME_LIMIT = 256  # characters
TAG_LIMIT = 128
TAGS_LIMIT = 64
NESTING_LIMIT = 100  # lists and objects inside each other; readers and writers of JSON give up at some hundreds
KEY_LIMIT = 255

_TAG = re.compile(rf"[A-Za-z0-9_-]{{1,{TAG_LIMIT}}}")


@frozen(kw_only=True)
class Submission:
    """A run that is wanted."""

    flow_name: str
    params: Mapping[str, Any] = NOTHING
    tag: str
    tags: tuple[str, ...]
    workflow_yaml: str | None = None
    extra: Mapping[str, Any] = NOTHING
    """Fields that the snapshot and the job carry beside the contract's."""


def submission_from(body: object, default_tag: str) -> Submission:
    """Read the body of POST /runs. Raises InvalidRequest, which names the field."""
    if not isinstance(body, dict):
        raise InvalidRequest(f'the body must be a JSON object as {{"flow_name": "hello"}}, not {_kind(body)}')
    tag = tag_from(body.get("tag"), default_tag)
    return Submission(
        flow_name=flow_name_from(body.get("flow_name")),
        params=params_from(body.get("params")),
        tag=tag,
        tags=_tags(body.get("tags")) or (tag,),
    )


def flow_name_from(found: object) -> str:
    """Check the name of a flow. Raises InvalidRequest."""
    if found is None:
        raise InvalidRequest("flow_name: is missing; name the flow to run")
    if not isinstance(found, str) or not found.strip():
        raise InvalidRequest(f"flow_name: must be text of at least one character, not {_kind(found)}")
    if len(found) > FLOW_NAME_LIMIT:
        raise InvalidRequest(f"flow_name: has {len(found)} characters; at most {FLOW_NAME_LIMIT} are allowed")
    if not found.isprintable():
        raise InvalidRequest(f"flow_name: {found!r} holds a character that cannot be printed; leave it out")
    return found


def tag_from(found: object, default_tag: str) -> str:
    """Check the tag that routes a run; none, or an empty one, is the default. Raises InvalidRequest."""
    if found is None:
        return default_tag
    if not isinstance(found, str):
        raise InvalidRequest(f"tag: must be text, not {_kind(found)}")
    tag = found.strip() or default_tag
    if not _TAG.fullmatch(tag):
        raise InvalidRequest(
            f"tag: {tag[:TAG_LIMIT]!r} is not one token of at most {TAG_LIMIT} letters, digits, - and _"
            " (a dot would make it two subjects)"
        )
    return tag


def params_from(found: object) -> dict[str, Any]:
    """Check the params of a run. Raises InvalidRequest."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidRequest(f'params: must be an object as {{"x": 1}}, not {_kind(found)}')
    level: list[Any] = [found]
    for _ in range(NESTING_LIMIT):
        inside = (each for one in level for each in (one.values() if isinstance(one, dict) else one))
        level = [each for each in inside if isinstance(each, dict | list)]
        if not level:
            return found
    raise InvalidRequest(f"params: has more than {NESTING_LIMIT} lists and objects inside each other")


def pending(wanted: Submission, run_id: str, caller: Principal | None, now: float) -> RunSnapshot:
    """The snapshot of a run that has just been accepted."""
    digest, size = _about(wanted.workflow_yaml)
    return RunSnapshot(
        run_id=run_id,
        flow_name=wanted.flow_name,
        status=RunStatus.PENDING,
        tag=wanted.tag,
        tags=wanted.tags,
        tenant_id=caller.tenant_id if caller else None,
        api_key_id=caller.key_id if caller else None,
        params=wanted.params,
        heartbeat_at=now,
        updated_at=now,
        submitted_at=now,
        workflow_yaml_sha256=digest,
        workflow_yaml_bytes=size,
        extra=wanted.extra,
    )


def job_for(snapshot: RunSnapshot, revision: int | None, workflow_yaml: str | None) -> Job:
    """The job of a run that has just been accepted, and stored with that revision; None if it is not known."""
    assert snapshot.tag is not None
    assert snapshot.submitted_at is not None
    return Job(
        run_id=snapshot.run_id,
        flow_name=snapshot.flow_name,
        tag=snapshot.tag,
        tags=snapshot.tags,
        params=snapshot.params,
        submitted_at=snapshot.submitted_at,
        tenant_id=snapshot.tenant_id,
        api_key_id=snapshot.api_key_id,
        workflow_yaml=workflow_yaml,
        workflow_yaml_sha256=snapshot.workflow_yaml_sha256,
        workflow_yaml_bytes=snapshot.workflow_yaml_bytes,
        snapshot_revision=revision,
        extra=snapshot.extra,
    )


def pending_as_in(job: Job) -> RunSnapshot:
    """The snapshot that the job was made from; only true of one with a `snapshot_revision`."""
    return RunSnapshot(
        run_id=job.run_id,
        flow_name=job.flow_name,
        status=RunStatus.PENDING,
        tag=job.tag,
        tags=job.tags,
        tenant_id=job.tenant_id,
        api_key_id=job.api_key_id,
        params=job.params,
        heartbeat_at=job.submitted_at,
        updated_at=job.submitted_at,
        submitted_at=job.submitted_at,
        workflow_yaml_sha256=job.workflow_yaml_sha256,
        workflow_yaml_bytes=job.workflow_yaml_bytes,
        extra=job.extra,
    )


def fingerprint(wanted: Submission) -> str:
    """Equal for two requests that want the same."""
    return _digest(_parts(wanted))


def fingerprint_of_batch(wanted: Sequence[Submission]) -> str:
    """Equal for two batches that want the same; never that of a single request."""
    return _digest([_parts(each) for each in wanted])


def ids_of_batch(seed: str, count: int) -> list[str]:
    """The ids of the runs of a batch: whoever knows the seed finds the same again."""
    digests = (hashlib.sha256(f"{seed}\n{place}".encode()).digest() for place in range(count))
    return [str(uuid.UUID(bytes=digest[:16], version=4)) for digest in digests]


def _parts(wanted: Submission) -> list[Any]:
    return [wanted.flow_name, dict(wanted.params), wanted.tag, wanted.tags, wanted.workflow_yaml]


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _about(workflow_yaml: str | None) -> tuple[str | None, int | None]:
    if workflow_yaml is None:
        return None, None
    data = workflow_yaml.encode()
    return hashlib.sha256(data).hexdigest(), len(data)


def _tags(found: object) -> tuple[str, ...]:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidRequest(f'tags: must be a list of texts as ["nightly"], not {_kind(found)}')
    if len(found) > TAGS_LIMIT:
        raise InvalidRequest(f"tags: has {len(found)} entries; at most {TAGS_LIMIT} are allowed")
    for each in found:
        if len(each) > TAG_LIMIT:
            raise InvalidRequest(f"tags: an entry has {len(each)} characters; at most {TAG_LIMIT} are allowed")
    return tuple(found)


def _kind(value: object) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    if value == "":
        return "empty text"
    return "null" if value is None else names.get(type(value), type(value).__name__)
