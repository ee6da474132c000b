"""The last hour as GET /stats shows it."""

from __future__ import annotations

from typing import Any

from pyoco_runtime.gateway.parts import GatewayParts
from pyoco_runtime.model.api_key import Principal
from pyoco_runtime.model.queue_minutes import Depth
from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.run_minutes import MINUTE_SEC, MINUTES, FlowHour, minutes_until
from pyoco_runtime.model.spread import Spread


def stats(parts: GatewayParts, who: Principal | None) -> dict[str, Any]:
    """Runs are those of the caller's tenant; the queue, which all share, is for admins."""
    now, tenant = parts.clock(), None if who is None else who.tenant_id
    sees_queue = who is None or who.is_admin
    return {
        "ts": now,
        "bucket_sec": MINUTE_SEC,
        "buckets": MINUTES,
        "start": minutes_until(now).start * MINUTE_SEC,
        "since": parts.queue_minutes.since,
        "counts": counts_of(parts, who),
        "ended": parts.runs.minutes.ended(now, tenant),
        "flows": [_flow(hour) for hour in parts.runs.minutes.flows(now, tenant)],
        "queue": [_tag(*each) for each in parts.queue_minutes.by_tag(now).items()] if sees_queue else [],
        "queue_visible": sees_queue,
    }


def counts_of(parts: GatewayParts, who: Principal | None) -> dict[RunStatus, int]:
    """How many runs of the caller's tenant have each status."""
    return parts.runs.index.counts(None if who is None else who.tenant_id)


def _flow(hour: FlowHour) -> dict[str, Any]:
    return {
        "flow": hour.flow,
        "total": hour.total,
        "p50": hour.whole.quantile(0.5),
        "p95": hour.whole.quantile(0.95),
        "count": hour.counts,
        "p50_sec": _quantiles(hour.minutes, 0.5),
        "p95_sec": _quantiles(hour.minutes, 0.95),
    }


def _quantiles(minutes: tuple[Spread, ...], share: float) -> list[float | None]:
    return [minute.quantile(share) for minute in minutes]


def _tag(tag: str, hour: tuple[Depth | None, ...]) -> dict[str, Any]:
    return {
        "tag": tag,
        "waiting": [None if depth is None else depth.waiting for depth in hour],
        "in_hand": [None if depth is None else depth.in_hand for depth in hour],
        "oldest_sec": [None if depth is None else round(depth.oldest_sec, 1) for depth in hour],
    }
