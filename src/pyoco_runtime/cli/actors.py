"""Shows the live supervision tree of every process on this NATS."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import NoReturn

import anyio
from attrs import asdict
from rich.console import Console as Terminal
from rich.live import Live
from rich.text import Text

from pyoco_runtime.cli import house as view
from pyoco_runtime.errors import NatsUnavailable, UserError
from pyoco_runtime.jetstream.house import House, house
from pyoco_runtime.model.house import ProcessReport

REFRESH_SEC = 2.0  # mailbox depths and processes that were killed announce nothing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `actors`."""
    view.add_nats_url(parser)
    parser.add_argument("--watch", action="store_true", help="keep it current until Ctrl-C")
    parser.add_argument("--output", choices=["table", "json"], default="table")


def main(args: argparse.Namespace) -> int:
    """Print the trees once, or keep them current."""
    where = view.urls(args)
    if args.watch:
        return anyio.run(_watch, where, args.output == "json")
    try:
        return anyio.run(_show, where, args.output == "json")
    except NatsUnavailable as error:
        raise view.unreachable(where, error) from error


async def _show(where: tuple[str, ...], as_json: bool) -> int:
    async with house(where) as found:
        reports = await found.reports()
    if not reports and not as_json:
        raise UserError("no process of pyoco-runtime answers on this NATS. Start one with: pyoco-runtime --role all")
    _print(reports, as_json)
    return 0


async def _watch(where: tuple[str, ...], as_json: bool) -> int:
    """Show the trees until Ctrl-C; a NATS that goes away is said and waited for."""
    with Live(auto_refresh=False, screen=sys.stdout.isatty() and not as_json) as live:

        def show(reports: list[ProcessReport]) -> None:
            if as_json:
                _print(reports, as_json)
            else:
                live.update(view.table(reports), refresh=True)

        while True:
            try:
                async with house(where) as found:
                    await _follow(found, show)
            except NatsUnavailable as error:
                live.update(Text(str(view.unreachable(where, error)), style="yellow"), refresh=not as_json)
            await anyio.sleep(1)


async def _follow(found: House, show: Callable[[list[ProcessReport]], None]) -> NoReturn:
    await found.watch()
    while True:
        found.changed = anyio.Event()
        show(await found.reports())
        with anyio.move_on_after(REFRESH_SEC):
            await found.changed.wait()


def _print(reports: list[ProcessReport], as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(report) for report in reports]), flush=True)
        return
    terminal = Terminal() if sys.stdout.isatty() else Terminal(width=200)
    terminal.print(view.table(reports))
