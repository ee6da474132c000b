"""What a submission may hold, and what it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.job import Job
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.submission import (
    NESTING_LIMIT,
    Submission,
    fingerprint,
    flow_name_from,
    job_for,
    params_from,
    pending,
    pending_as_in,
    submission_from,
    tag_from,
)
from pyoco_runtime.model.wire import job_from, job_to, snapshot_from, snapshot_to

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
FIELDS = st.sampled_from(["flow_name", "params", "tag", "tags", "else"])
WANTED = Submission(flow_name="f", tag="t", tags=("t",))


@given(JSON | st.dictionaries(FIELDS, JSON) | st.fixed_dictionaries({"flow_name": st.text()}, optional={"tags": JSON}))
def test_anything_is_read_or_refused(body: Any) -> None:
    """With InvalidRequest and nothing else; what is accepted survives the way to the worker and back."""
    try:
        wanted = submission_from(body, "default")
    except InvalidRequest:
        return
    snapshot = pending(wanted, "r", None, 5.0)
    assert snapshot_from(snapshot_to(snapshot, 10**9)[0]) == snapshot
    job = job_for(snapshot, 3, wanted.workflow_yaml)
    assert job_from(job_to(job)) == job


@given(st.text())
def test_a_tag_is_one_token_or_refused(text: str) -> None:
    """Whatever is accepted can stand in a subject."""
    try:
        tag = tag_from(text, "default")
    except InvalidRequest:
        return
    assert tag.isascii()
    assert tag
    assert not set(tag) & set(". *>\t\n\r")


@given(st.text())
def test_a_flow_name_can_be_printed_or_is_refused(text: str) -> None:
    """Into logs, headers of tables and metrics."""
    try:
        assert flow_name_from(text) == text
    except InvalidRequest:
        return
    text.encode()
    assert text.strip()


@pytest.mark.parametrize("depth", [1, NESTING_LIMIT - 1, NESTING_LIMIT, NESTING_LIMIT + 1, 50_000])
@pytest.mark.parametrize("as_list", [True, False])
def test_how_deep_params_may_be(depth: int, as_list: bool) -> None:
    """The params themselves are the first level."""
    params: Any = {}
    for _ in range(depth - 2):
        params = [params] if as_list else {"x": params}
    params = {"x": params} if depth > 1 else {}
    if depth <= NESTING_LIMIT:
        assert params_from(params) is params
        json.dumps(params)
    else:
        with pytest.raises(InvalidRequest, match="inside each other"):
            params_from(params)
        while params:  # the interpreter would take it apart by recursion
            params = params.pop("x") if isinstance(params, dict) else params.pop()


def test_a_fingerprint_tells_requests_apart() -> None:
    """By all that the run depends on; the order of params counts for nothing."""
    params = {"a": 1, "b": [1, 2]}
    others = [
        WANTED,
        evolve(WANTED, flow_name="g"),
        evolve(WANTED, tag="u"),
        evolve(WANTED, tags=()),
        evolve(WANTED, tags=("t", "u")),
        evolve(WANTED, params=params),
        evolve(WANTED, params={"a": 1, "b": [2, 1]}),
        evolve(WANTED, workflow_yaml=""),
        evolve(WANTED, workflow_yaml="x"),
    ]
    assert len({fingerprint(each) for each in others}) == len(others)
    again = evolve(WANTED, params=dict(reversed(params.items())))
    assert fingerprint(again) == fingerprint(evolve(WANTED, params=params))
    assert fingerprint(evolve(WANTED, extra={"replay_of": "x"})) == fingerprint(WANTED)


def test_a_pending_snapshot_and_its_job() -> None:
    """They agree in all that both have; the text of a flow.yaml is in the job only."""
    wanted = evolve(WANTED, params={"x": 1}, workflow_yaml="é", extra={"replay_of": "o"})
    run = pending(wanted, "r", Principal("key-1", "demo", False), 5.0)
    assert (run.status, run.updated_at, run.heartbeat_at, run.submitted_at) == (RunStatus.PENDING, 5.0, 5.0, 5.0)
    assert (run.workflow_yaml_bytes, len(run.workflow_yaml_sha256 or "")) == (2, 64)
    job = job_for(run, 9, "é")
    assert isinstance(job, Job)
    for name in ("run_id", "flow_name", "tag", "tags", "params", "tenant_id", "api_key_id", "extra", "submitted_at"):
        assert getattr(job, name) == getattr(run, name)
    assert (job.workflow_yaml, job.snapshot_revision) == ("é", 9)
    assert "é" not in snapshot_to(run, 10**6)[0].decode()


def test_a_run_without_a_file_has_no_digest() -> None:
    """Nor a size."""
    run = pending(WANTED, "r", None, 5.0)
    assert (run.workflow_yaml_sha256, run.workflow_yaml_bytes, run.tenant_id) == (None, None, None)


@pytest.mark.parametrize("caller", [None, Principal("key-id-1", "demo", False)])
@pytest.mark.parametrize("workflow_yaml", [None, "flow:\n  graph: a\n"])
def test_a_worker_can_tell_the_snapshot_from_the_job(caller: Principal | None, workflow_yaml: str | None) -> None:
    """To the last field: it claims the run over this, unread, and what is missing here would be lost."""
    wanted = evolve(WANTED, params={"x": [1, 0.1, "日本"]}, tags=("a", "b"), workflow_yaml=workflow_yaml)
    snapshot = pending(evolve(wanted, extra={"replay_of": "r-0"}), "r-1", caller, 1234.5678)
    job = job_from(job_to(job_for(snapshot, 7, workflow_yaml)))
    assert isinstance(job, Job)
    assert job.snapshot_revision == 7
    assert pending_as_in(job) == snapshot_from(snapshot_to(snapshot, 10**6)[0])
