"""How the runs of the last hour ended and how long they took, minute by minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_news import RunNews
from pyoco_runtime.model.run_summary import RunSummary
from pyoco_runtime.model.run_tally import OTHER_FLOWS, duration_sec
from pyoco_runtime.model.spread import Spread

MINUTE_SEC = 60
MINUTES = 60  # that are kept, the one that runs now included
MOST_FLOWS = 50  # of a tenant, in a minute
MOST_TENANTS = 200  # in a minute
SHOWN_FLOWS = 20

ENDINGS = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


@define
class _Share:
    """One tenant's part of a minute."""

    ended: dict[RunStatus, int] = field(factory=dict)
    flows: dict[str, Spread] = field(factory=dict)
    counts: dict[str, int] = field(factory=dict)


@frozen
class FlowHour:
    """The last hour of a flow, oldest minute first."""

    flow: str
    counts: tuple[int, ...]
    minutes: tuple[Spread, ...]
    whole: Spread

    @property
    def total(self) -> int:
        """How many of its runs have ended."""
        return sum(self.counts)


class RunMinutes:
    """Of bounded size, whatever the names are. What is stored when a process starts counts too, if it is young enough.

    A run counts in the minute in which it ended by its worker's clock; what lies in the future counts nowhere.
    """

    def __init__(self) -> None:
        self._minutes: dict[int, dict[str | None, _Share]] = {}

    def note(self, news: RunNews, now: float) -> None:
        """Count a run that has ended by this; all other news are nothing to it."""
        run = news.after
        if run is None or not run.status.is_terminal or (news.before is not None and news.before.status.is_terminal):
            return
        ended_at, minute = run.end_time or run.updated_at, minute_of(now)
        if ended_at is None or not minute - MINUTES < minute_of(ended_at) <= minute:
            return
        self._forget_before(minute - MINUTES + 1)
        self._count(run, self._share_of(minute_of(ended_at), run.tenant_id))

    def ended(self, now: float, tenant: str | None = None) -> Mapping[RunStatus, tuple[int, ...]]:
        """How many ended with each status, of one tenant or of all, oldest minute first."""
        hour = [self._shares(minute, tenant) for minute in minutes_until(now)]
        return {
            status: tuple(sum(share.ended.get(status, 0) for share in shares) for shares in hour) for status in ENDINGS
        }

    def flows(self, now: float, tenant: str | None = None) -> list[FlowHour]:
        """The flows of one tenant or of all, those with the most runs first; beyond 20 all others are one."""
        hour = [self._shares(minute, tenant) for minute in minutes_until(now)]
        totals: dict[str, int] = {}
        for share in (share for shares in hour for share in shares):
            for flow, number in share.counts.items():
                totals[flow] = totals.get(flow, 0) + number
        named = sorted(totals, key=lambda flow: (flow == OTHER_FLOWS, -totals[flow], flow))
        found = [_hour_of(flow, [flow], hour) for flow in named[:SHOWN_FLOWS]]
        return found + ([_hour_of(OTHER_FLOWS, rest, hour)] if (rest := named[SHOWN_FLOWS:]) else [])

    def _count(self, run: RunSummary, share: _Share) -> None:
        share.ended[run.status] = share.ended.get(run.status, 0) + 1
        flow = run.flow_name if run.flow_name in share.flows or len(share.flows) < MOST_FLOWS else OTHER_FLOWS
        spread = share.flows.setdefault(flow, Spread())
        share.counts[flow] = share.counts.get(flow, 0) + 1
        took_sec = duration_sec(run)
        if took_sec is not None:
            spread.observe(took_sec)

    def _share_of(self, minute: int, tenant: str | None) -> _Share:
        shares = self._minutes.setdefault(minute, {})
        if tenant not in shares and len(shares) >= MOST_TENANTS:
            tenant = None  # only whoever sees all tenants sees these
        return shares.setdefault(tenant, _Share())

    def _shares(self, minute: int, tenant: str | None) -> list[_Share]:
        shares = self._minutes.get(minute, {})
        if tenant is None:
            return list(shares.values())
        return [shares[tenant]] if tenant in shares else []

    def _forget_before(self, minute: int) -> None:
        for old in [each for each in self._minutes if each < minute]:
            del self._minutes[old]


def minute_of(at: float) -> int:
    """The number of the minute that this moment lies in."""
    return int(at // MINUTE_SEC)


def minutes_until(now: float) -> range:
    """The numbers of the minutes of the last hour."""
    return range(minute_of(now) - MINUTES + 1, minute_of(now) + 1)


def _hour_of(shown: str, flows: Iterable[str], hour: list[list[_Share]]) -> FlowHour:
    counts, minutes, whole = [], [], Spread()
    for shares in hour:
        minute = Spread()
        for flow in flows:
            for share in shares:
                if flow in share.flows:
                    minute.add(share.flows[flow])
        counts.append(sum(share.counts.get(flow, 0) for share in shares for flow in flows))
        minutes.append(minute)
        whole.add(minute)
    return FlowHour(shown, tuple(counts), tuple(minutes), whole)
