"""How many runs have ended, and how long they took, since this process began to listen."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from pyoco_runtime.model.histogram import Histogram
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_summary import RunSummary

OTHER_FLOWS = "(other)"
"""Stands for the flows that are too many to be told apart."""

BUCKETS_SEC = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds; a no-op takes milliseconds, a training run hours."""

MOST_FLOWS = 100  # of a tenant
MOST_TENANTS = 1000


@define
class _Share:
    """The part of one tenant."""

    ended: dict[tuple[str, RunStatus], int] = field(factory=dict)
    durations: dict[str, Histogram] = field(factory=dict)
    flows: set[str] = field(factory=set)


class RunTally:
    """Counters that only grow, of bounded number: they hold what was seen to end, not what is stored."""

    def __init__(self, most_flows: int = MOST_FLOWS, most_tenants: int = MOST_TENANTS) -> None:
        self._most_flows = most_flows
        self._most_tenants = most_tenants
        self._shares: dict[str | None, _Share] = {}

    def note(self, news: RunNews) -> None:
        """Count a run that has ended by this; all other news are nothing to it."""
        run = news.after
        if run is None or not run.status.is_terminal:
            return
        if news.before is not None and news.before.status.is_terminal:
            return
        share = self._share_of(run.tenant_id)
        flow = self._flow_in(share, run.flow_name)
        share.ended[flow, run.status] = share.ended.get((flow, run.status), 0) + 1
        took_sec = duration_sec(run)
        if took_sec is not None:
            share.durations.setdefault(flow, Histogram(BUCKETS_SEC)).observe(took_sec)

    def ended(self, tenant: str | None = None) -> Mapping[tuple[str, RunStatus], int]:
        """How many runs of each flow have ended with each status, of one tenant or of all."""
        counts: dict[tuple[str, RunStatus], int] = {}
        for share in self._shares_of(tenant):
            for key, number in share.ended.items():
                counts[key] = counts.get(key, 0) + number
        return counts

    def durations(self, tenant: str | None = None) -> Mapping[str, Histogram]:
        """How long the runs of each flow took from start to end, of one tenant or of all."""
        found: dict[str, Histogram] = {}
        for share in self._shares_of(tenant):
            for flow, durations in share.durations.items():
                found.setdefault(flow, Histogram(BUCKETS_SEC)).add(durations)
        return found

    def _shares_of(self, tenant: str | None) -> list[_Share]:
        if tenant is None:
            return list(self._shares.values())
        return [self._shares[tenant]] if tenant in self._shares else []

    def _share_of(self, tenant: str | None) -> _Share:
        if tenant not in self._shares and len(self._shares) >= self._most_tenants:
            tenant = None  # only whoever sees all tenants sees these
        return self._shares.setdefault(tenant, _Share())

    def _flow_in(self, share: _Share, flow: str) -> str:
        if flow not in share.flows and len(share.flows) >= self._most_flows:
            return OTHER_FLOWS
        share.flows.add(flow)
        return flow


def duration_sec(run: RunSummary) -> float | None:
    """None for one that never started, or whose writers' clocks disagree."""
    if run.start_time is None or run.end_time is None or run.end_time < run.start_time:
        return None
    return run.end_time - run.start_time
