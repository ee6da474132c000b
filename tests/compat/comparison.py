"""What it means that our answer covers the peer's: everything that it says, ours says too; ours may say more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx

HEADERS = ("content-disposition", "cache-control", "x-accel-buffering")
"""Those that clients and proxies go by."""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
OPAQUE = frozenset({"next_cursor", "ts", "event_id", "worker_state"})
"""Their values mean nothing to a client but that they are there, or change from one moment to the next."""
MOVING = frozenset({"last_seen_at", "last_heartbeat_at", "heartbeat_at", "worker_heartbeat_at", "updated_at"})
"""Of a worker that lives: it writes between the two requests."""
SAMPLE = re.compile(r"(?m)^(pyoco_\w+(?:\{[^}]*\})?) (\S+)$")


def differences(ours: httpx.Response, theirs: httpx.Response, *, moving: bool = False) -> list[str]:
    """Where our answer does not cover theirs, in words; `moving` if times may differ."""
    return list(_differences(ours, theirs, MOVING if moving else frozenset({"worker_heartbeat_at"})))


def _differences(ours: httpx.Response, theirs: httpx.Response, moving: frozenset[str]) -> Iterator[str]:
    if ours.status_code != theirs.status_code:
        yield f"status {ours.status_code} for {theirs.status_code}"
        return
    kinds = [each.headers.get("content-type", "").partition(";")[0] for each in (ours, theirs)]
    if kinds[0] != kinds[1]:
        yield f"content type {kinds[0]} for {kinds[1]}"
        return
    for header in HEADERS:
        if header in theirs.headers and ours.headers.get(header) != theirs.headers[header]:
            yield f"{header}: {ours.headers.get(header)} for {theirs.headers[header]}"
    match kinds[1]:
        case "application/json" if theirs.content:
            yield from uncovered(ours.json(), theirs.json(), "body", moving)
        case "text/event-stream":
            yield from uncovered(events(ours.text), events(theirs.text), "events", moving)
        case "text/plain":
            yield from uncovered(samples(ours.text), samples(theirs.text), "metrics", moving)
        case _:
            if ours.content != theirs.content:
                yield "other bytes"


def uncovered(ours: Any, theirs: Any, where: str = "it", moving: frozenset[str] = frozenset()) -> Iterator[str]:
    """Where ours does not say what theirs says."""
    match theirs:
        case dict() if isinstance(ours, dict):
            for key, value in theirs.items():
                if key not in ours:
                    yield f"{where}.{key} is missing"
                elif key in moving or key in OPAQUE:
                    yield from _same_kind(ours[key], value, f"{where}.{key}")
                else:
                    yield from uncovered(ours[key], value, f"{where}.{key}", moving)
        case list() if isinstance(ours, list) and len(ours) == len(theirs):
            for number, (mine, other) in enumerate(zip(_ordered(ours), _ordered(theirs), strict=True)):
                yield from uncovered(mine, other, f"{where}[{number}]", moving)
        case str() if isinstance(ours, str) and (where == "body.detail" and ours.startswith(theirs)):
            return  # the contract: `detail` starts with the short text
        case str() if isinstance(ours, str) and UUID.fullmatch(ours) and UUID.fullmatch(theirs):
            return
        case _ if type(ours) is not type(theirs) or ours != theirs:
            yield f"{where} is {ours!r:.200}, not {theirs!r:.200}"


def _ordered(items: list[Any]) -> list[Any]:
    """Workers are listed by their last sign of life, which moves between two requests; all else has its place."""
    if all(isinstance(each, dict) and "instance_id" in each for each in items):
        return sorted(items, key=lambda each: str(each["worker_id"]))
    return items


def _same_kind(ours: Any, theirs: Any, where: str) -> Iterator[str]:
    if type(ours) is not type(theirs):
        yield f"{where} is {ours!r:.200}, and theirs {theirs!r:.200}"


def events(text: str) -> list[tuple[str, Any]]:
    """The events of a stream, without what only ours has."""
    found = re.findall(r"(?m)^event: (snapshot|heartbeat)\ndata: (.*)$", text)
    return [[name, json.loads(data)] for name, data in found]  # type: ignore[misc]  # lists, so that they are compared


def samples(text: str) -> dict[str, float]:
    """The figures of a metrics page by name and labels."""
    return {name: float(value) for name, value in SAMPLE.findall(text)}


def still(value: Any) -> Any:
    """The same without what is new in every run: ids, times and digests of times."""
    match value:
        case dict():
            return {key: "..." if _is_new(key, each) else still(each) for key, each in value.items()}
        case list():
            return [still(each) for each in value]
        case str() if UUID.fullmatch(value):
            return "a run"
    return value


def _is_new(key: str, value: Any) -> bool:
    if key in ("attempt", "submitted_at"):  # fields of ours: of the worker, and of the gateway that took the run in
        return True
    if key in ("ts", "start_time", "end_time", "duration_ms") or key.endswith("_at"):
        return isinstance(value, float)
    return key in ("nuid", "mtime", "event_id", "host", "next_cursor") and isinstance(value, str)
