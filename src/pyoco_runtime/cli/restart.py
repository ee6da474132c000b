"""Restarts one actor of one process and shows that its siblings kept running."""

from __future__ import annotations

import argparse

import anyio
from rich.console import Console as Terminal
from rich.table import Table

from pyoco_runtime.cli import house as view
from pyoco_runtime.errors import NatsUnavailable, UserError
from pyoco_runtime.jetstream.house import House, house
from pyoco_runtime.model.house import ActorReport, ProcessReport

WAIT_SEC = 60.0  # an actor may drain before it goes down


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `restart`."""
    parser.add_argument("process", help="its name as `pyoco-runtime actors` shows it, or a unique beginning")
    parser.add_argument("actor", help="a path such as runtime/gateway/http, or its unique last part: http")
    view.add_nats_url(parser)


def main(args: argparse.Namespace) -> int:
    """Restart the actor, wait until it is up again, and compare the tree with what it was."""
    where = view.urls(args)
    try:
        return anyio.run(_restart, where, args.process, args.actor)
    except NatsUnavailable as error:
        raise view.unreachable(where, error) from error


async def _restart(where: tuple[str, ...], wanted: str, actor: str) -> int:
    async with house(where) as found:
        before = view.pick(await found.reports(), wanted)
        await found.watch()
        path = await found.restart(before.process, actor)
        after = await _up_again(found, before, path)
    _tell(path, before, after)
    return 0


async def _up_again(found: House, before: ProcessReport, path: str) -> ProcessReport:
    known = _named(before, path)
    restarts = 0 if known is None else known.restarts
    with anyio.move_on_after(WAIT_SEC):
        while True:
            found.changed = anyio.Event()
            for report in await found.reports():
                if report.process == before.process:
                    actor = _named(report, path)
                    if actor is None:
                        return report  # of a run nothing is left when its job has been given back
                    if actor.restarts > restarts and actor.state in ("running", "done"):
                        return report
            with anyio.move_on_after(1):
                await found.changed.wait()
    raise UserError(f"{path} of {before.process} is not up again after {WAIT_SEC:g} s; see: pyoco-runtime actors")


def _named(report: ProcessReport, path: str) -> ActorReport | None:
    return next((actor for actor in report.tree.walk() if actor.path == path), None)


def _tell(path: str, before: ProcessReport, after: ProcessReport) -> None:
    old = {actor.path: actor for actor in before.tree.walk()}
    table = Table("actor", "state", "restarts", "", box=None, padding=(0, 2, 0, 0))
    for actor in after.tree.walk():
        same = actor.path in old and old[actor.path].restarts == actor.restarts and old[actor.path].since == actor.since
        told = "[bold]restarted[/bold]" if actor.path == path else "[green]kept running[/green]" if same else "changed"
        was = old[actor.path].restarts if actor.path in old else 0
        table.add_row(
            actor.path, actor.state, f"{was} -> {actor.restarts}" if was != actor.restarts else str(was), told
        )
    terminal = Terminal()
    terminal.print(f"{path} of {before.process} was restarted.", highlight=False)
    terminal.print(table)
