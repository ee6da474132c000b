"""pyoco-client batch: a file with one run a line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import cast

from attrs import frozen

from pyoco_runtime.cli.client.options import add_output, file_bytes
from pyoco_runtime.cli.client.progress import bar
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.client.answers import BatchItem, Submission
from pyoco_runtime.errors import InvalidRequest, PyocoError, UserError
from pyoco_runtime.model.submission import submission_from

CHUNK = 500  # runs in one request: the gateway takes 1,000, and the bar moves twice as often
SHOWN = 10  # wrong lines that are named; one mistake is often in all of them


@frozen
class Line:
    """A run that is wanted, and where that stands."""

    number: int
    item: Submission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `batch`."""
    parser.add_argument(
        "file", help='JSONL: a line is {"flow_name": "main", "params": {}, "tag": "default", "tags": []}; - is stdin'
    )
    parser.add_argument("--from-line", type=int, default=1, metavar="N", help="leave out the lines before this one")
    add_output(parser, "table", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Check every line, then send them; 1 if the gateway refused any."""
    raw = sys.stdin.buffer.read() if args.file == "-" else file_bytes(args.file, session)
    lines = [line for line in read(raw, args.file, session) if line.number >= args.from_line]
    if not lines:
        raise UserError(session.say(151, path=args.file))
    results = _send(lines, session)
    refused = [(line.number, result) for line, result in zip(lines, results, strict=True) if "run_id" not in result]
    if args.output == "json":
        accepted = len(results) - len(refused)
        session.screen.json({"results": results, "accepted": accepted, "refused": len(refused)})
    else:
        for result in results:
            if "run_id" in result:
                session.screen.line(result["run_id"])
    for number, result in refused[:SHOWN]:
        session.note(153, line=number, reason=result.get("detail"))
    session.note(152, accepted=len(results) - len(refused), refused=len(refused))
    return 1 if refused else 0


def read(raw: bytes, path: str, session: Session) -> list[Line]:
    """Every run of the file, checked as the gateway does. Raises UserError, which names each wrong line."""
    found: list[Line] = []
    wrong: list[str] = []
    for number, text in enumerate(raw.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            found.append(Line(number, _item(text)))
        except (InvalidRequest, ValueError) as error:
            wrong.append(session.say(154, line=number, reason=error))
    if wrong:
        more = [session.say(155, count=len(wrong) - SHOWN)] if len(wrong) > SHOWN else []
        raise UserError("\n  ".join([session.say(150, path=path, count=len(wrong)), *wrong[:SHOWN], *more]))
    return found


def _item(text: bytes) -> Submission:
    body = json.loads(text)
    submission_from(body, "default")
    return cast(Submission, body)


def _send(lines: list[Line], session: Session) -> list[BatchItem]:
    """Send them in pieces; if one fails, say which lines were taken and where to go on."""
    results: list[BatchItem] = []
    with bar(session.say(156)) as update:
        update(0, len(lines))
        for chunk in _chunks(lines):
            try:
                results += session.client.submit_batch([line.item for line in chunk])["results"]
            except PyocoError:
                _tell_where(lines, len(results), session)
                raise
            update(len(results), len(lines))
    return results


def _tell_where(lines: list[Line], sent: int, session: Session) -> None:
    if sent:
        session.note(157, first=lines[0].number, last=lines[sent - 1].number, next=lines[sent].number)


def _chunks(lines: list[Line]) -> Iterator[list[Line]]:
    return (lines[begin : begin + CHUNK] for begin in range(0, len(lines), CHUNK))
