"""pyoco-client watch: what happens to a run, as it happens."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any

from pyoco_runtime.cli.client.moments import clock
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.run_table import STATUS_STYLES
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.client.events import Heartbeat, Interrupted, RunChanged

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
Event = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `watch`."""
    parser.add_argument("run_id")
    parser.add_argument("--records", action="store_true", help="include task_records")
    parser.add_argument("--since", type=float, default=None, help="only changes from this unix time on")
    parser.add_argument(
        "--timeout-sec",
        type=int,
        default=None,
        help="how long, 1 to 600 [default 60; with --until-terminal: until it has ended]",
    )
    parser.add_argument("--max-events", type=int, default=0, help="0 means unlimited")
    parser.add_argument("--until-terminal", action="store_true", help="stop when the run has ended")
    add_output(parser, "json", "status")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print every event."""
    with closing(_events(args, session)) as events:
        for count, event in enumerate(events, start=1):
            _show(event, args.output, session)
            if 0 < args.max_events <= count:
                break
            if args.until_terminal and _status(event) in TERMINAL:
                break
    return 0


def _events(args: argparse.Namespace, session: Session) -> Generator[Event, None, None]:
    """One stream as published; who waits for the end, without a time of his own, gets as many as that takes."""
    if args.until_terminal and args.timeout_sec is None:
        yield from _until_the_end(args, session)
        return
    with closing(
        session.client.watch_run(
            args.run_id, include_records=args.records, since=args.since, timeout_sec=args.timeout_sec
        )
    ) as events:
        yield from events


def _until_the_end(args: argparse.Namespace, session: Session) -> Generator[Event, None, None]:
    with closing(session.client.watch(args.run_id, since=args.since, include_records=args.records)) as events:
        for event in events:
            match event:
                case RunChanged():
                    data: dict[str, Any] = {"run_id": args.run_id, "snapshot": event.run, "ts": event.ts}
                    yield {"event": "snapshot", "data": data}
                case Heartbeat():
                    yield {"event": "heartbeat", "data": {"run_id": args.run_id, "ts": event.ts}}
                case Interrupted():
                    session.note(141, problem=event.problem, seconds=round(event.again_in_sec, 1))


def _show(event: Event, output: str, session: Session) -> None:
    if output == "json":
        session.screen.json(event)
        return
    data = event.get("data") or {}
    snapshot = data.get("snapshot") or {}
    run_id = data.get("run_id") or snapshot.get("run_id") or "-"
    moment = data.get("ts") or snapshot.get("updated_at") or "-"
    status = _status(event) or "-"
    if session.screen.is_terminal:
        shown = f"{clock(moment)[-8:]:<8}  {event.get('event')!s:<9}  {status:<10}  {run_id}"
        session.screen.line(shown, STATUS_STYLES.get(status, "dim"))
    else:
        session.screen.line(f"{moment}\t{event.get('event')}\t{status}\t{run_id}")


def _status(event: Event) -> str | None:
    found: str | None = ((event.get("data") or {}).get("snapshot") or {}).get("status")
    return found
