"""pyoco-client dlq: the dead letters, and what to do with them."""

from __future__ import annotations

import argparse

from pyoco_runtime.cli.client.moments import ago, clock
from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import Column, Item, field, one_line
from pyoco_runtime.model.dead_letter import Reason

COLUMNS = (
    field("seq", is_id=True),
    Column(
        name="when",
        raw=lambda item: str(item.get("timestamp") or "-"),
        shown=lambda item: f"{ago(item.get('timestamp'))} ago",
        weight=2,
    ),
    field("reason", style=lambda item: "red", weight=5),
    field("flow_name", weight=4),
    field("run_id", is_id=True),
    field("error", weight=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `dlq`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|replay|drop")
    listing = actions.add_parser("list", help="List dead letters, the newest first")
    listing.add_argument("--reason", choices=list(Reason), default=None, metavar="REASON", help=", ".join(Reason))
    listing.add_argument("--flow", default=None, help="only letters of this flow")
    listing.add_argument("--tag", default=None, help="only letters of this tag")
    listing.add_argument("--run-id", default=None, help="only letters of this run")
    listing.add_argument("--limit", type=int, default=None, help="at most so many, 1 to 200 [default 50]")
    listing.add_argument("--before", type=int, default=None, metavar="SEQ", help="only letters before this one")
    add_output(listing, "table", "json")
    for name, text in (
        ("show", "Show one with all that is known"),
        ("replay", "Submit its run again, as a new run"),
        ("drop", "Delete it"),
    ):
        action = actions.add_parser(name, help=text, description=text + ".")
        action.add_argument("seq", type=int, help="its number, from `dlq list`")
        add_output(action, "text" if name == "show" else "json", *(["json"] if name == "show" else []))


def run(args: argparse.Namespace, session: Session) -> int:
    """Do one of them."""
    match args.action:
        case "list":
            _list(args, session)
        case "show":
            _show(args, session)
        case "replay":
            session.screen.json(session.client.replay_letter(args.seq))
        case _:
            session.screen.json(session.client.drop_letter(args.seq))
    return 0


def _list(args: argparse.Namespace, session: Session) -> None:
    page = session.client.list_dlq(
        reason=args.reason, flow=args.flow, tag=args.tag, run_id=args.run_id, limit=args.limit, before=args.before
    )
    if args.output == "json":
        session.screen.json(page)
        return
    session.screen.table(COLUMNS, page["items"])
    if page["next_before"] is not None:
        session.note(158, before=page["next_before"])


def _show(args: argparse.Namespace, session: Session) -> None:
    letter: Item = session.client.get_letter(args.seq)
    if args.output == "json":
        session.screen.json(letter)
        return
    width = max(len(name) for name in letter)
    for name, value in letter.items():
        shown = clock(value) if name == "timestamp" else "-" if value is None else str(value)
        session.screen.line(f"{name.ljust(width)}  {one_line(shown)}")
    if letter.get("replayable"):
        session.note(159, seq=args.seq)
