"""pyoco-client doctor: looks at everything that a run needs, and says what to do."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Any

import httpx

from pyoco_runtime.cli.client import diagnosis
from pyoco_runtime.cli.client.finding import Finding, Level, ok, problem, warning
from pyoco_runtime.cli.client.metrics import samples
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.client.errors import GatewayRefused
from pyoco_runtime.errors import PyocoError

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_KEY_NEEDED = (401, 403)
_WIDTH = len("dead letters")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `doctor`."""
    add_output(parser, "text", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print a line for everything that was looked at; 1 if there is a problem."""
    found = []
    for each in findings(session):
        found.append(each)
        if args.output == "text":
            _show(each, session)
    if args.output == "json":
        session.screen.json([_as_data(each, session) for each in found])
    return int(any(each.level is Level.PROBLEM for each in found))


def findings(session: Session) -> Iterator[Finding]:
    """Look at one thing after another; what needs a gateway is left out if there is none."""
    try:
        session.client.health()
    except PyocoError as error:
        yield problem("server", 164, 180, server=session.server, reason=_why(error))
        return
    yield ok("server", 163, server=session.server)
    yield diagnosis.on_clock(_skew(session.server))
    yield diagnosis.on_readiness(_missing(session))
    try:
        yield from _inside(session)
    except GatewayRefused as error:
        if error.status not in _KEY_NEEDED:
            raise
        yield problem("api key", 165, 166, reason=error.detail)


def _inside(session: Session) -> Iterator[Finding]:
    """What only a caller with a key may see."""
    client = session.client
    failed, figures = _resources(session)
    yield diagnosis.on_resources(failed, len(_tries(session)))
    if failed:
        return
    workers: list[Mapping[str, Any]] = [*client.get_workers(scope="all", limit=500)]
    yield from diagnosis.on_workers(workers, time.time())
    yield from diagnosis.on_flows(workers)
    yield from diagnosis.on_queue(_labelled(figures, "pyoco_queue_waiting", "tag"), workers)
    yield from diagnosis.on_letters(_figure(figures, "pyoco_dlq_messages_total"))
    processes = _processes(session)
    if processes is None:
        yield warning("actors", 167, 115)
    else:
        yield from diagnosis.on_actors(processes)
    yield diagnosis.on_versions(f"pyoco-runtime {version('pyoco-runtime')}", _gateway(session), processes, workers)


def _tries(session: Session) -> dict[str, Callable[[], object]]:
    """One question for each thing that is stored."""
    client = session.client
    return {
        "runs": lambda: client.list_runs(limit=1),
        "workers": lambda: client.get_workers(limit=1),
        "wheels": client.list_wheels,
        "wheel history": lambda: client.list_wheel_history(limit=1),
        "queue and dead letters": client.get_metrics,
    }


def _resources(session: Session) -> tuple[dict[str, str], list[dict[str, Any]]]:
    failed: dict[str, str] = {}
    page = ""
    for name, ask in _tries(session).items():
        try:
            answer = ask()
        except GatewayRefused as error:
            if error.status in _KEY_NEEDED:
                raise
            failed[name] = _why(error)
        except PyocoError as error:
            failed[name] = _why(error)
        else:
            page = answer if isinstance(answer, str) else page
    return failed, list(samples(page))


def _missing(session: Session) -> list[str]:
    try:
        return session.client.ready()["missing"]
    except GatewayRefused:
        return []  # the published gateway has no /ready; its routes tell


def _processes(session: Session) -> list[Mapping[str, Any]] | None:
    """All processes of ours; None if this key may not see them, or the gateway is the published one."""
    try:
        return [*session.client.actors()]
    except GatewayRefused:
        return None


def _gateway(session: Session) -> str:
    """What answers, by its own words."""
    try:
        info = session.client.openapi().get("info") or {}
    except PyocoError:
        return "?"
    return f"{info.get('title')} {info.get('version')}"


def _skew(server: str) -> float | None:
    """By how many seconds the gateway's clock is ahead of ours; None if it does not say."""
    before = time.time()
    try:
        answer = httpx.get(server.rstrip("/") + "/health", timeout=5.0)
    except httpx.HTTPError:
        return None
    middle = (before + time.time()) / 2
    try:
        told = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except ValueError:
        return None
    return told + 0.5 - middle  # it counts whole seconds: on average half of one has gone by


def _labelled(figures: list[dict[str, Any]], name: str, label: str) -> dict[str, float]:
    return {each["labels"].get(label, ""): each["value"] for each in figures if each["name"] == name}


def _figure(figures: list[dict[str, Any]], name: str) -> float | None:
    return next((each["value"] for each in figures if each["name"] == name), None)


def _why(error: PyocoError) -> str:
    return str(error.detail) if isinstance(error, GatewayRefused) else str(error)


def _show(found: Finding, session: Session) -> None:
    head = f"{found.level:<8} {found.subject:<{_WIDTH}}  "
    session.screen.remark(head, session.say(found.number, **found.values), _STYLES[found.level])
    if found.do is not None:
        session.screen.remark(" " * len(head) + "→ ", session.say(found.do, server=session.server))


def _as_data(found: Finding, session: Session) -> dict[str, object]:
    return {
        "level": found.level,
        "subject": found.subject,
        "text": session.say(found.number, **found.values),
        "do": None if found.do is None else session.say(found.do, server=session.server),
    }
