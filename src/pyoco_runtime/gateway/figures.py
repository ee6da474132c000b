"""The figures of GET /metrics, read off what the gateway knows; nothing is counted by scanning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import anyio
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from pyoco_runtime.errors import NatsUnavailable
from pyoco_runtime.gateway.days import midnight_before
from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.histogram import Histogram
from pyoco_runtime.model.house import ActorReport
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.ports import TagDepth

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH_SEC = 1.0  # what costs a round trip is asked for once in this time
FLOWS = 100  # told apart in runs by flow


class Figures:
    """Under API keys everybody gets the figures of his tenant; those of the house are for admins."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._depths: tuple[TagDepth, ...] = ()
        self._letters = 0
        self._asked_at = float("-inf")

    async def text(self, who: Principal | None) -> bytes:
        """The page. Raises NatsUnavailable."""
        if not self._parts.link.is_up:
            raise NatsUnavailable(self._parts.link.problem)
        await self._ask()
        families = list(self._of_runs(who.tenant_id if who else None))
        if who is None or who.is_admin:
            families += self._of_the_house()
        return generate_latest(_Page(families))

    async def _ask(self) -> None:
        now = anyio.current_time()
        if now < self._asked_at + FRESH_SEC:
            return
        self._asked_at = now  # before the wait: many may ask at the same time
        try:
            self._depths = await self._parts.gauge.read()
            self._letters = await self._parts.dead_letters.count()
        except NatsUnavailable:
            self._asked_at = float("-inf")
            raise

    def _of_runs(self, tenant: str | None) -> Iterator[Metric]:
        index, parts = self._parts.runs.index, self._parts
        midnight = midnight_before(parts.clock())
        yield _gauge("pyoco_runs_total", "Runs that are stored.", "status", index.counts(tenant))
        today = index.counts_since(midnight, tenant)
        yield _gauge("pyoco_runs_today_total", "Runs that were updated today.", "status", today)
        alive = parts.workers.index.alive(parts.clock(), parts.disconnect_timeout_sec)
        yield GaugeMetricFamily("pyoco_workers_alive_total", "Workers that run or are idle.", alive)
        letters = self._letters if tenant is None else parts.letters.index.count(tenant)
        yield GaugeMetricFamily("pyoco_dlq_messages_total", "Dead letters that are stored.", letters)
        flows = GaugeMetricFamily("pyoco_runs_by_flow", "Runs that are stored.", labels=["flow", "status"])
        for (flow, status), number in index.counts_by_flow(FLOWS, tenant).items():
            flows.add_metric([_label(flow), status], number)
        yield flows
        ended = CounterMetricFamily(
            "pyoco_runs_ended", "Runs that this gateway has seen to end.", labels=["flow", "status"]
        )
        for (flow, status), number in parts.runs.tally.ended(tenant).items():
            ended.add_metric([_label(flow), status], number)
        yield ended
        took = HistogramMetricFamily("pyoco_run_duration_seconds", "From start to end of a run.", labels=["flow"])
        for flow, durations in parts.runs.tally.durations(tenant).items():
            took.add_metric([_label(flow)], _buckets(durations), durations.sum_sec)
        yield took
        behind = int(parts.runs.behind is not None)
        yield GaugeMetricFamily("pyoco_run_index_behind", "1 while the figures of runs may be old.", behind)

    def _of_the_house(self) -> Iterator[Metric]:
        yield from self._of_the_queue()
        yield from self._of_http()
        yield from self._of_actors()

    def _of_the_queue(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("pyoco_queue_waiting", "Jobs that nobody has taken.", labels=["tag"])
        in_hand = GaugeMetricFamily("pyoco_queue_in_hand", "Jobs that a worker has.", labels=["tag"])
        oldest = GaugeMetricFamily(
            "pyoco_queue_oldest_waiting_seconds", "Age of the oldest job that nobody has taken.", labels=["tag"]
        )
        now = self._parts.clock()
        for depth in self._depths:
            waiting.add_metric([depth.tag], depth.waiting)
            in_hand.add_metric([depth.tag], depth.in_hand)
            since = depth.oldest_waiting_at
            oldest.add_metric([depth.tag], 0.0 if since is None else max(0.0, now - since))
        yield from (waiting, in_hand, oldest)

    def _of_http(self) -> Iterator[Metric]:
        took = HistogramMetricFamily(
            "pyoco_http_request_duration_seconds", "From request to answer.", labels=["method", "route", "status"]
        )
        for (method, route, status), latency in self._parts.traffic.by_route.items():
            took.add_metric([method, route, str(status)], _buckets(latency), latency.sum_sec)
        yield took
        yield GaugeMetricFamily("pyoco_watchers", "Streams that are open.", self._parts.runs.followers)

    def _of_actors(self) -> Iterator[Metric]:
        report = self._parts.own_report()
        labels = ["process", "actor"]
        restarts = CounterMetricFamily("pyoco_actor_restarts", "Restarts of an actor.", labels=labels)
        mailboxes = GaugeMetricFamily("pyoco_actor_mailbox_depth", "What waits in a mailbox.", labels=labels)
        for actor in _lasting(report.tree):
            restarts.add_metric([report.process, actor.path], actor.restarts)
            if actor.mailbox is not None:
                mailboxes.add_metric([report.process, actor.path], actor.mailbox)
        yield from (restarts, mailboxes)


class _Page(Collector):
    """What prometheus-client wants to see."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _lasting(tree: ActorReport) -> Iterator[ActorReport]:
    """All but the actors of single runs, which would make one time series each."""
    return (actor for actor in tree.walk() if not actor.name.startswith("run:"))


def _gauge(name: str, text: str, label: str, values: Mapping[RunStatus, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _label(text: str) -> str:
    """The text in characters that have a place in UTF-8; other writers may have stored halves of some."""
    return text.encode("utf-8", "backslashreplace").decode()


def _buckets(found: Histogram) -> list[tuple[str, float]]:
    return list(zip([*map(str, found.bounds), "+Inf"], map(float, accumulate(found.counts)), strict=True))
