"""pyoco-client logs: what the tasks of a run printed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from attrs import Factory, define, frozen

from pyoco_runtime.cli.client.options import add_output
from pyoco_runtime.cli.client.session import Session
from pyoco_runtime.cli.client.table import one_line
from pyoco_runtime.client.events import RunChanged
from pyoco_runtime.errors import UserError
from pyoco_runtime.wording import nearest

_STREAMS = {"stdout": "", "stderr": "yellow", "traceback": "red", "error": "bold red"}
"""What a record holds of a task's words, in the order in which it is shown, and its colour."""


@frozen
class Line:
    """A line that a task printed."""

    task: str
    stream: str
    text: str


@define
class Spoken:
    """What was shown already, so that a follower sees every line once."""

    seen: dict[tuple[str, str], str] = Factory(dict)

    def lines(self, records: Mapping[str, Mapping[str, Any]], is_over: bool) -> Iterator[Line]:
        """The lines that are new in these records; one without its end waits, unless the run is over."""
        for task, record in records.items():
            for stream in _STREAMS:
                text = record.get(stream)
                if isinstance(text, str) and text:
                    yield from (Line(task, stream, line) for line in self._fresh(task, stream, text, is_over))

    def _fresh(self, task: str, stream: str, text: str, is_over: bool) -> list[str]:
        whole = text if is_over or stream in ("error", "traceback") else text[: text.rfind("\n") + 1]
        before = self.seen.get((task, stream), "")
        self.seen[task, stream] = whole
        return whole[overlap(before, whole) :].splitlines()


def overlap(before: str, now: str) -> int:
    """Up to where `now` was in `before` already: of a long output only the end is kept."""
    if now.startswith(before):
        return len(before)
    longest = min(len(before), len(now))
    return next((size for size in range(longest, 0, -1) if before.endswith(now[:size])), 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `logs`."""
    parser.add_argument("run_id")
    parser.add_argument("--task", default=None, help="only this task")
    parser.add_argument("--follow", action="store_true", help="go on until the run has ended")
    add_output(parser, "text", "json")


def run(args: argparse.Namespace, session: Session) -> int:
    """Print the lines of every task."""
    is_silent = True
    for line in _lines(args, session):
        is_silent = False
        _show(line, args, session)
    if is_silent and args.output == "text":
        session.note(160)
    return 0


def _lines(args: argparse.Namespace, session: Session) -> Iterator[Line]:
    spoken = Spoken()
    if not args.follow:
        yield from spoken.lines(_chosen(session.client.get_tasks(args.run_id), args.task, session), is_over=True)
        return
    with closing(session.client.watch(args.run_id, include_records=True)) as events:
        for event in events:
            if isinstance(event, RunChanged):
                records = event.run.get("task_records") or {}
                chosen = {name: each for name, each in records.items() if args.task in (None, name)}
                yield from spoken.lines(chosen, event.is_terminal)


def _chosen(found: Mapping[str, Any], task: str | None, session: Session) -> Mapping[str, Mapping[str, Any]]:
    """The records of this task, or of all. Raises UserError if the run has no such task."""
    records: Mapping[str, Mapping[str, Any]] = found.get("task_records") or {}
    if task is None:
        return records
    known = {*records, *(found.get("tasks") or {})}
    if task not in known:
        near = nearest(task, known)
        raise UserError(session.say(161, task=task, near=near or "-", tasks=", ".join(sorted(known)) or "-"))
    return {task: records.get(task, {})}


def _show(line: Line, args: argparse.Namespace, session: Session) -> None:
    if args.output == "json":
        session.screen.json({"task": line.task, "stream": line.stream, "text": line.text})
        return
    text = one_line(line.text.expandtabs(8)) if session.screen.is_terminal else line.text
    session.screen.line(text if args.task else f"{line.task} | {text}", _STREAMS[line.stream])
