"""From what the doctor sees to what the doctor says: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyoco_runtime.cli.client.finding import Finding, ok, problem, warning
from pyoco_runtime.cli.client.moments import duration

SKEW_WARNING_SEC = 2.0  # the Date header counts whole seconds: less cannot be told
SKEW_PROBLEM_SEC = 20.0  # from here on a live worker counts as disconnected
ACTIVE = frozenset({"RUNNING", "IDLE"})
FINE = frozenset({"running", "done", "starting"})

Worker = Mapping[str, Any]
Process = Mapping[str, Any]


def on_readiness(missing: Sequence[str]) -> Finding:
    """NATS, as the gateway sees it."""
    return problem("nats", 171, 181, missing="; ".join(missing)) if missing else ok("nats", 170)


def on_resources(failed: Mapping[str, str], tried: int) -> Finding:
    """Streams, buckets and stores: each was asked for something."""
    if not failed:
        return ok("resources", 172, count=tried)
    return problem("resources", 173, 182, failed="; ".join(f"{name}: {why}" for name, why in failed.items()))


def on_workers(workers: Sequence[Worker], now: float) -> Iterator[Finding]:
    """Who is there to take runs."""
    active = [each for each in workers if each.get("state") in ACTIVE]
    tags = sorted({str(tag) for each in active for tag in each.get("tags") or ()})
    if active:
        yield ok("workers", 174, count=len(active), tags=", ".join(tags) or "-")
    else:
        yield problem("workers", 175, 183)
    lost = [str(each.get("worker_id")) for each in workers if each.get("state") == "DISCONNECTED"]
    if lost:
        yield warning("workers", 176, 184, count=len(lost), workers=_some(lost))
    ahead = [
        str(each.get("worker_id")) for each in active if (each.get("last_seen_at") or 0.0) - now > SKEW_WARNING_SEC
    ]
    if ahead:
        yield warning("clock", 177, 185, workers=_some(ahead))


def on_flows(workers: Sequence[Worker]) -> Iterator[Finding]:
    """What they can run."""
    active = [each for each in workers if each.get("state") in ACTIVE]
    flows = sorted({str(flow) for each in active for flow in each.get("flows") or ()})
    if flows:
        yield ok("flows", 178, flows=_some(flows))
    elif active:
        yield warning("flows", 179, 186)


def on_queue(waiting: Mapping[str, float], workers: Sequence[Worker]) -> Iterator[Finding]:
    """Runs that wait for workers that are not there."""
    served = {str(tag) for each in workers if each.get("state") in ACTIVE for tag in each.get("tags") or ()}
    for tag, count in sorted(waiting.items()):
        if count and tag not in served:
            yield problem("queue", 190, 187, count=int(count), tag=tag)


def on_letters(count: float | None) -> Iterator[Finding]:
    """Dead letters."""
    if count:
        yield warning("dead letters", 191, 188, count=int(count))
    elif count is not None:
        yield ok("dead letters", 192)


def on_clock(skew_sec: float | None) -> Finding:
    """This machine's clock beside the gateway's."""
    if skew_sec is None:
        return warning("clock", 193)
    away = abs(skew_sec)
    if away < SKEW_WARNING_SEC:
        return ok("clock", 194)
    how = problem if away >= SKEW_PROBLEM_SEC else warning
    return how("clock", 195, 185, skew=duration(away))


def on_versions(ours: str, gateway: str, processes: Iterable[Process] | None, workers: Sequence[Worker]) -> Finding:
    """Who runs what: a mix works, and should not last."""
    found = {gateway: 1}
    for each in processes or ():
        name = f"pyoco-runtime {each.get('version')}"
        found[name] = found.get(name, 0) + 1
    published = sum(each.get("state") in ACTIVE and "flows" not in each for each in workers)
    if published:
        found["pyoco-server (worker)"] = published
    shown = ", ".join(sorted(found))
    if len(found) > 1:
        return warning("versions", 196, 189, found=shown, ours=ours)
    return ok("versions", 197, found=shown, ours=ours)


def on_actors(processes: Iterable[Process]) -> Iterator[Finding]:
    """Actors that are not as they should be."""
    down = [
        f"{each['process']}:{actor['path']} ({actor['state']})"
        for each in processes
        for actor in _walk(each["tree"])
        if actor["state"] not in FINE
    ]
    if down:
        yield problem("actors", 198, 199, actors=_some(down))


def _walk(actor: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield actor
    for child in actor["children"]:
        yield from _walk(child)


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f", +{len(names) - most}" if len(names) > most else ""
    return ", ".join(names[:most]) + more
