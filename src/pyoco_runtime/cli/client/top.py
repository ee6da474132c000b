"""pyoco-client top: runs and workers, live."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from attrs import asdict

from pyoco_runtime.cli.client.metrics import samples
from pyoco_runtime.cli.client.options import add_output, add_run_filters
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.client.events import (
    Heartbeat,
    Interrupted,
    ListDropped,
    ListEvent,
    ListReady,
    RunGone,
    RunListed,
)
from pyoco_runtime.errors import PyocoError, UserError

if TYPE_CHECKING:
    from pyoco_runtime.cli.client.board import Board

HOUSE_SEC = 2.0  # between two looks at the workers, of which there is no stream
LISTED = 200  # runs that the screen begins with: the most that one request gives


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `top`."""
    add_run_filters(parser)
    add_output(parser, "screen", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Show them until Ctrl-C. Raises UserError without a terminal."""
    if args.output == "json":
        for event in _events(args, session):
            session.screen.json({"event": type(event).__name__, **asdict(event)})
        return 0
    if not session.screen.is_terminal:
        raise UserError(session.say(162))
    # asked to end, it puts the terminal in order first
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    _live(args, session)
    return 0


def _live(args: argparse.Namespace, session: Session) -> None:
    from rich.live import Live

    from pyoco_runtime.cli.client.board import Board

    board = Board(session.server)
    looked_at = float("-inf")
    with Live(board, screen=True, refresh_per_second=4):
        for event in _events(args, session):
            _tell(board, event, args, session)
            # the stream speaks at least every few seconds, so that this needs no timer of its own
            if time.monotonic() >= looked_at + HOUSE_SEC:
                _look(board, session)
                looked_at = time.monotonic()


def _events(args: argparse.Namespace, session: Session) -> Iterator[ListEvent]:
    with closing(session.client.watch_list(status=args.status, flow=args.flow, tag=args.tag)) as events:
        yield from events


def _tell(board: Board, event: ListEvent, args: argparse.Namespace, session: Session) -> None:
    match event:
        case ListReady() | ListDropped():
            board.trouble("")
            board.listed(session.client.list_runs(status=args.status, flow=args.flow, tag=args.tag, limit=LISTED))
        case RunListed():
            board.changed(event.run)
        case RunGone():
            board.gone(event.run_id)
        case Interrupted():
            board.trouble(session.say(141, problem=event.problem, seconds=round(event.again_in_sec, 1)))
        case Heartbeat():
            board.trouble("")


def _look(board: Board, session: Session) -> None:
    """Read the workers and the figures; a failure is on show until the next look."""
    try:
        board.house(session.client.get_workers(), _counts(samples(session.client.get_metrics())))
    except PyocoError as error:
        board.trouble(str(error))


def _counts(figures: Iterator[dict[str, Any]]) -> dict[str, float]:
    return {each["labels"].get("status", ""): each["value"] for each in figures if each["name"] == "pyoco_runs_total"}
