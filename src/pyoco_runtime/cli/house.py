"""What `actors` and `restart` share: which NATS to ask, and how a tree looks on a terminal."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from rich.table import Table
from rich.text import Text

from pyoco_runtime.errors import NatsUnavailable, NoSuchActor, UserError
from pyoco_runtime.model.house import ActorReport, ProcessReport
from pyoco_runtime.settings import load
from pyoco_runtime.tree import DEFAULT_NATS_URL, KNOWN

COLOURS = {"running": "green", "done": "dim", "waiting": "yellow", "starting": "yellow", "stopping": "yellow"}


def add_nats_url(parser: argparse.ArgumentParser) -> None:
    """The one option that both have."""
    parser.add_argument("--nats-url", help=f"NATS to ask [PYOCO_NATS_URL; default {DEFAULT_NATS_URL}]")


def urls(args: argparse.Namespace) -> tuple[str, ...]:
    """Where to look: the option, the environment, .env, supervisor.toml, or the default."""
    given = {} if args.nats_url is None else {"nats_url": args.nats_url}
    return load(given, os.environ, Path.cwd(), KNOWN).settings.nats_url or (DEFAULT_NATS_URL,)


def unreachable(where: tuple[str, ...], error: NatsUnavailable) -> UserError:
    """The error for a NATS that does not answer, with what to do."""
    shown = ", ".join(url.rpartition("@")[2].removeprefix("nats://") for url in where)
    return UserError(
        f"NATS at {shown} does not answer ({error}). Start one with: pyoco-runtime --role all, or name it: --nats-url nats://host:4222"
    )


def pick(reports: list[ProcessReport], wanted: str) -> ProcessReport:
    """The process with this name or unique beginning. Raises NoSuchActor."""
    found = [r for r in reports if r.process == wanted] or [r for r in reports if r.process.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(r.process for r in (found or reports)) or "none"
    problem = "is not unique" if found else "is not on this NATS"
    raise NoSuchActor(f"process {wanted!r} {problem}; processes: {names}")


def table(reports: list[ProcessReport]) -> Table:
    """All trees in one table."""
    drawn = Table("actor", "state", "since", "restarts", "mailbox", "last crash", box=None, padding=(0, 2, 0, 0))
    now = time.time()
    for report in reports:
        title = f"{report.process}  {report.role} · pid {report.pid} on {report.host} · {report.version}"
        drawn.add_row(Text(title, style="bold"))
        for actor in report.tree.walk():
            drawn.add_row(*_row(actor, now))
    return drawn


def _row(actor: ActorReport, now: float) -> tuple[Text | str, ...]:
    crash = actor.last_crash
    told = f"{crash.type}: {crash.message} at {_place(crash.where)}, {ago(now - crash.at)} ago" if crash else ""
    indent = "  " * (actor.path.count("/") + 1)
    return (
        Text(indent + actor.name, style="bold" if actor.supervisor else ""),
        Text(actor.state, style=COLOURS.get(actor.state, "red")),
        ago(now - actor.since),
        Text(str(actor.restarts), style="yellow" if actor.restarts else "dim"),
        "" if actor.mailbox is None else str(actor.mailbox),
        Text(told, style="red", overflow="fold"),
    )


def _place(where: str) -> str:
    """The file's last two parts are enough for a table; JSON has it whole."""
    path, _, rest = where.partition(":")
    return "/".join(path.split("/")[-2:]) + (f":{rest}" if rest else "")


def ago(seconds: float) -> str:
    """A duration in the two largest units."""
    whole = max(0, int(seconds))
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // smaller}{name}"
    return f"{whole}s"
