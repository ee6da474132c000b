"""The diagram of a run's states is what the pure functions do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from pyoco_runtime.model.attempt import Attempt
from pyoco_runtime.model.job import InvalidJob, Job
from pyoco_runtime.model.progress import Completed, Ending, FlowNotFound, Killed, Raised, Stopped
from pyoco_runtime.model.reconcile import on_missing
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.transition import beaten, cancelling
from pyoco_runtime.model.verdict import Conclude, Execute, on_delivery, on_ending
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/explanation/run-state-machine.md"
JOB = Job(run_id="r", flow_name="f", tag="default", submitted_at=0.0)
ENDINGS: tuple[Ending, ...] = (Completed(), Raised("error"), FlowNotFound("f"), Stopped(), Killed())
NOW = 1.0


def next_ones(found: RunSnapshot) -> Iterator[RunSnapshot | None]:
    """Every snapshot that gateways, workers and reconcilers may write over this one."""
    yield cancelling(found, NOW, None)
    for job in (JOB, InvalidJob("no job", b"")):
        for is_last in (False, True):
            newer = Attempt(1, 2)
            match on_delivery(job, found, newer, is_last=is_last, worker_id="w", now=NOW):
                case Execute(snapshot) | Conclude(snapshot=snapshot):
                    yield snapshot
    if found.attempt is not None and not found.status.is_terminal:  # somebody executes it
        yield beaten(found, NOW)
        yield from (on_ending(found, ending, NOW).snapshot for ending in ENDINGS)
    end = on_missing(found, NOW)
    yield end.snapshot if end is not None else None


def walked() -> set[tuple[RunStatus, RunStatus]]:
    """Every change of the status that can happen, from the submission on."""
    first = RunSnapshot(run_id="r", flow_name="f", status=RunStatus.PENDING, tag="default")
    seen, ahead = set(), [first]
    changes = set()
    while ahead:
        found = ahead.pop()
        key = (found.status, found.cancel_requested_at is None, found.attempt is None)
        if key in seen:
            continue
        seen.add(key)
        for after in next_ones(found):
            if after is None:
                continue
            if after.status is not found.status or after.attempt != found.attempt:
                changes.add((found.status, after.status))
            ahead.append(evolve(after, attempt=after.attempt and Attempt(1, 1)))
    return changes


def drawn() -> set[tuple[str, str]]:
    """The arrows between statuses in the diagram."""
    [(_, text)] = blocks(PAGE, "mermaid")
    return set(re.findall(r"(?m)^ *([A-Z]+) --> ([A-Z]+)", text))


def test_the_diagram_shows_every_change_and_no_other() -> None:
    """What the functions can do and what the page draws are the same."""
    assert drawn() == {(str(before), str(after)) for before, after in walked()}


def test_every_status_has_its_place() -> None:
    """None is missing in the diagram, and the terminal ones have no way out but the end."""
    [(_, text)] = blocks(PAGE, "mermaid")
    ends = set(re.findall(r"(?m)^ *([A-Z]+) --> \[\*\]", text))
    assert {name for pair in drawn() for name in pair} == set(RunStatus)
    assert ends == {str(status) for status in RunStatus if status.is_terminal}
    assert not ends & {before for before, _ in drawn()}
