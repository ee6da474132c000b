"""Shows the live supervision tree of every process on this NATS."""

from __future__ import annotations

import argparse
import json
import sys

import anyio
from attrs import asdict
from rich.console import Console as Terminal
from rich.live import Live

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
    try:
        return anyio.run(_show, where, args.output == "json", args.watch)
    except NatsUnavailable as error:
        raise view.unreachable(where, error) from error


async def _show(where: tuple[str, ...], as_json: bool, watch: bool) -> int:
    async with house(where) as found:
        if watch:
            await _watch(found, as_json)
        reports = await found.reports()
        if not reports and not as_json:
            raise UserError(
                "no process of pyoco-runtime answers on this NATS. Start one with: pyoco-runtime --role all"
            )
        _print(reports, as_json, Terminal())
    return 0


async def _watch(found: House, as_json: bool) -> None:
    await found.watch()
    terminal = Terminal()
    with Live(console=terminal, auto_refresh=False, screen=terminal.is_terminal and not as_json) as live:
        reports: list[ProcessReport] = []
        while True:
            found.changed = anyio.Event()
            reports = await found.reports()
            if as_json:
                _print(reports, as_json, terminal)
            else:
                live.update(view.table(reports), refresh=True)
            with anyio.move_on_after(REFRESH_SEC):
                await found.changed.wait()


def _print(reports: list[ProcessReport], as_json: bool, terminal: Terminal) -> None:
    if as_json:
        print(json.dumps([asdict(report) for report in reports]), flush=True)
        return
    if not sys.stdout.isatty():
        terminal = Terminal(width=200)
    terminal.print(view.table(reports))
