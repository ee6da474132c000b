"""The last hour, minute by minute: what ended, how long it took, how full the queue was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model.queue_minutes import MOST_TAGS, Depth, QueueMinutes
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_minutes import MOST_FLOWS, MOST_TENANTS, SHOWN_FLOWS, RunMinutes
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_summary import RunSummary, Summarizer
from pyoco_runtime.model.run_tally import OTHER_FLOWS
from pyoco_runtime.model.spread import Spread

NOW = 1_000_000 * 60.0 + 30
DONE, FAILED, RUNNING = RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.RUNNING


def summary(status: RunStatus = DONE, flow_name: str = "f", **fields: Any) -> RunSummary:
    values = {"start_time": NOW - 2, "end_time": NOW, **fields}
    return Summarizer().summary_of(RunSnapshot(run_id="r", flow_name=flow_name, status=status, **values), 1)


def news(before: RunSummary | None, after: RunSummary | None) -> RunNews:
    return RunNews(run_id="r", revision=1, before=before, after=after)


def test_only_the_way_into_a_terminal_status_counts() -> None:
    """From an open one, or from nothing that we knew."""
    minutes = RunMinutes()
    for each in [
        news(summary(RUNNING), summary()),
        news(None, summary(FAILED)),
        news(summary(), summary()),
        news(None, summary(RUNNING)),
        news(summary(RUNNING), None),
    ]:
        minutes.note(each, NOW)
    assert {status: sum(each) for status, each in minutes.ended(NOW).items()} == {
        DONE: 1,
        FAILED: 1,
        RunStatus.CANCELLED: 0,
    }


@pytest.mark.parametrize(
    ("end_time", "place"),
    [
        (NOW, 59),
        (NOW - 31, 58),
        (NOW - 59 * 60, 0),
        (NOW - 60 * 60, None),
        (NOW + 29, 59),
        (NOW + 31, None),
        (0.0, None),
        (1e300, None),
    ],
)
def test_a_run_counts_in_the_minute_in_which_it_ended(end_time: float, place: int | None) -> None:
    """What is older than an hour, or comes from a clock that is wrong, counts nowhere."""
    minutes = RunMinutes()
    minutes.note(news(None, summary(end_time=end_time)), NOW)
    ended = minutes.ended(NOW)[DONE]
    assert len(ended) == 60
    assert [index for index, number in enumerate(ended) if number] == ([] if place is None else [place])


def test_without_an_end_the_last_change_counts() -> None:
    """Other writers may leave it out."""
    minutes = RunMinutes()
    minutes.note(news(None, summary(end_time=None, updated_at=NOW - 60)), NOW)
    minutes.note(news(None, summary(end_time=None)), NOW)
    assert minutes.ended(NOW)[DONE][-2:] == (1, 0)


def test_what_grows_too_old_is_forgotten() -> None:
    """Memory has a bound in time."""
    minutes = RunMinutes()
    for minute in range(200):
        at = NOW + 60 * minute
        minutes.note(news(None, summary(end_time=at)), at)
    assert minutes.ended(NOW + 199 * 60)[DONE] == (1,) * 60
    assert len(minutes._minutes) == 60
    assert sum(minutes.ended(NOW + 1e6)[DONE]) == 0


def test_flows_by_their_number_of_runs() -> None:
    """With how long they took, in each minute and in the hour."""
    minutes = RunMinutes()
    for flow, took_sec, ago in [("f", 1, 0), ("g", 1, 0), ("g", 9, 0), ("g", 5, 60)]:
        minutes.note(news(None, summary(flow_name=flow, start_time=NOW - took_sec - ago, end_time=NOW - ago)), NOW)
    g, f = minutes.flows(NOW)
    assert (g.flow, g.total, g.counts[-2:], f.flow, f.total) == ("g", 3, (1, 2), "f", 1)
    assert g.whole.quantile(0.5) == pytest.approx(5, rel=0.06)
    assert g.minutes[-1].quantile(0.95) == pytest.approx(9, rel=0.06)
    assert g.minutes[0].quantile(0.5) is None


def test_a_run_that_never_started_has_no_duration_and_counts() -> None:
    """As one that was cancelled while it waited."""
    minutes = RunMinutes()
    minutes.note(news(None, summary(start_time=None)), NOW)
    (flow,) = minutes.flows(NOW)
    assert (flow.total, flow.whole.quantile(0.5)) == (1, None)


def test_flows_and_tenants_beyond_the_limits_are_one() -> None:
    """Names come from others: memory has a bound in them too."""
    minutes = RunMinutes()
    for number in range(MOST_FLOWS + 10):
        minutes.note(news(None, summary(flow_name=f"f{number}")), NOW)
    found = minutes.flows(NOW)
    assert len(found) == SHOWN_FLOWS + 1
    assert (found[-1].flow, found[-1].total) == (OTHER_FLOWS, MOST_FLOWS + 10 - SHOWN_FLOWS)
    for number in range(MOST_TENANTS + 10):
        minutes.note(news(None, summary(tenant_id=f"t{number}")), NOW)
    assert sum(minutes.ended(NOW)[DONE]) == MOST_FLOWS + MOST_TENANTS + 20
    assert sum(minutes.ended(NOW, "t1")[DONE]) == 1
    assert sum(minutes.ended(NOW, f"t{MOST_TENANTS + 5}")[DONE]) == 0
    assert minutes.flows(NOW, "nobody") == []


@given(st.lists(st.floats(0.002, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_quantiles_are_right_to_within_five_percent(times: list[float], share: float) -> None:
    """As the k-th of the sorted list would be."""
    spread = Spread()
    for each in times:
        spread.observe(each)
    rank = next(k for k in range(1, len(times) + 1) if k >= share * len(times))
    assert spread.quantile(share) == pytest.approx(sorted(times)[rank - 1], rel=0.055)


def test_the_shortest_durations_are_a_millisecond() -> None:
    """Nothing that runs takes less; zero and less have no logarithm."""
    spread = Spread()
    for each in (0.0, 1e-9, 0.001):
        spread.observe(each)
    assert (spread.count, spread.quantile(0.5), Spread().quantile(0.5)) == (3, 0.001, None)


# -- the queue --------------------------------------------------------------------------------------------------------


def test_of_several_looks_in_a_minute_the_worst_is_kept() -> None:
    """A queue that was full for ten seconds was full."""
    minutes = QueueMinutes()
    minutes.note([("t", Depth(5, 1, 2.0))], NOW)
    minutes.note([("t", Depth(1, 3, 9.0))], NOW + 15)
    assert minutes.by_tag(NOW + 20)["t"][-1] == Depth(5, 3, 9.0)
    assert minutes.since == NOW


def test_a_minute_in_which_nobody_looked_is_not_known() -> None:
    """A tag that was not there when somebody did look had nothing."""
    minutes = QueueMinutes()
    minutes.note([("t", Depth(1, 0, 1.0))], NOW)
    minutes.note([("u", Depth(2, 0, 1.0))], NOW + 120)
    assert minutes.by_tag(NOW + 120)["t"][-4:] == (None, Depth(1, 0, 1.0), None, Depth(0, 0, 0.0))


def test_a_minute_that_has_just_begun_looks_as_the_last_look_did() -> None:
    """Or a chart would lose its end every minute; after half a minute nobody knows any more."""
    minutes = QueueMinutes()
    minutes.note([("t", Depth(9, 0, 9.0))], NOW)
    minutes.note([("t", Depth(1, 0, 1.0))], NOW + 25)
    assert minutes.by_tag(NOW + 31)["t"][-2:] == (Depth(9, 0, 9.0), Depth(1, 0, 1.0))
    assert minutes.by_tag(NOW + 56)["t"][-1] is None


def test_the_queue_of_an_hour_and_of_a_hundred_tags() -> None:
    """Memory has a bound."""
    minutes = QueueMinutes()
    for minute in range(100):
        minutes.note([(f"t{n}", Depth(1, 0, 1.0)) for n in range(MOST_TAGS + 5)], NOW + 60 * minute)
    assert len(minutes._minutes) == 60
    assert len(minutes.by_tag(NOW + 99 * 60)) == MOST_TAGS
