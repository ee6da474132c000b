"""What is counted when runs end."""

from __future__ import annotations

from typing import Any

from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_summary import RunSummary, Summarizer
from pyoco_runtime.model.run_tally import BUCKETS_SEC, OTHER_FLOWS, RunTally

DONE, FAILED, RUNNING = RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.RUNNING


def summary(status: RunStatus = DONE, flow_name: str = "f", **fields: Any) -> RunSummary:
    snapshot = RunSnapshot(run_id="r", flow_name=flow_name, status=status, **fields)
    return Summarizer().summary_of(snapshot, 1)


def news(before: RunSummary | None, after: RunSummary | None) -> RunNews:
    return RunNews(run_id="r", revision=1, before=before, after=after)


def test_only_the_way_into_a_terminal_status_counts() -> None:
    """From an open one, or from nothing that we knew."""
    tally = RunTally()
    tally.note(news(summary(RUNNING), summary(DONE)))
    tally.note(news(None, summary(FAILED)))
    tally.note(news(summary(DONE), summary(DONE)))
    tally.note(news(None, summary(RUNNING)))
    tally.note(news(summary(RUNNING), None))
    assert tally.ended() == {("f", DONE): 1, ("f", FAILED): 1}


def test_durations_fall_into_the_first_bucket_that_holds_them() -> None:
    """A bound belongs to its bucket; what is longer than all has one of its own; nonsense is left out."""
    tally = RunTally()
    for took in (0.0, BUCKETS_SEC[0], BUCKETS_SEC[0] + 0.01, 1e6):
        tally.note(news(None, summary(start_time=100.0, end_time=100.0 + took)))
    tally.note(news(None, summary(start_time=5.0, end_time=4.0)))
    tally.note(news(None, summary(end_time=4.0)))
    durations = tally.durations()["f"]
    assert durations.counts[0] + durations.counts[1] == 3
    assert durations.counts[-1] == 1
    assert durations.count == 4
    assert durations.sum_sec > 1e6
    assert tally.ended() == {("f", DONE): 6}


def test_each_tenant_has_its_own_and_none_is_all() -> None:
    """Another tenant's runs are seen by nobody else."""
    tally = RunTally(most_tenants=2)
    for tenant in ("A", "B", "B", "C"):
        tally.note(news(None, summary(tenant_id=tenant, start_time=1.0, end_time=2.0)))
    assert tally.ended("A") == {("f", DONE): 1}
    assert tally.durations("B")["f"].count == 2
    assert tally.ended("C") == {}, "one tenant too many: seen by those who see all"
    assert tally.durations("nobody") == {}
    assert tally.ended() == {("f", DONE): 4}
    assert tally.durations()["f"].count == 4


def test_the_number_of_flows_is_bounded() -> None:
    """All others are one."""
    tally = RunTally(most_flows=2)
    for n in range(50):
        tally.note(news(None, summary(flow_name=f"f-{n}", start_time=1.0, end_time=2.0)))
    assert tally.ended() == {("f-0", DONE): 1, ("f-1", DONE): 1, (OTHER_FLOWS, DONE): 48}
    assert tally.durations()[OTHER_FLOWS].count == 48
