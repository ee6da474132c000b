"""`pyoco-runtime --role ...`: starts the tree, or shows what would start."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path

import anyio
from rich.console import Console as Terminal
from rich.table import Table
from rich.tree import Tree as Drawing

from pyoco_runtime import logs
from pyoco_runtime.core import Event, Stopped, Supervisor, run_program
from pyoco_runtime.errors import ActorError
from pyoco_runtime.layout import ActorLayout, SupervisorLayout
from pyoco_runtime.settings import SETTINGS, Loaded, LogFormat, Role, Settings, load, shown
from pyoco_runtime.tree import KNOWN, Tree, members, outline, plant

_log = logging.getLogger(__name__)
SERVICE = {Role.GATEWAY: "pyoco-server:http", Role.WORKER: "pyoco-server:worker", Role.ALL: "pyoco-server:all"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every setting that has an option, from the one table of settings."""
    for setting in SETTINGS:
        if setting.has_option:
            text = f"{setting.doc} [{setting.env}; default {setting.default}]"
            parser.add_argument(setting.option, dest=setting.name, help=text.replace("%", "%%"))
    parser.add_argument("--check", action="store_true", help="check the configuration, show it and the tree, and exit")


def main(args: argparse.Namespace) -> int:
    """Start the tree and run until a signal stops it."""
    given = {key: value for key, value in vars(args).items() if key != "check" and value is not None}
    loaded = load(given, os.environ, Path.cwd(), KNOWN)
    if args.check:
        show(loaded, Terminal())
        return 0
    settings = loaded.settings
    logs.set_up(_style(settings), settings.log_level)
    sys.stdout = sys.stderr  # it belongs to the log lines: what flows print in threads of ours must not come between
    tree = plant(loaded)
    try:
        return anyio.run(_serve, tree, backend="asyncio", backend_options={"use_uvloop": sys.platform != "win32"})
    finally:
        tree.close()


async def _serve(tree: Tree) -> int:
    supervisor = Supervisor(tree.spec, world=tree.world)
    tree.desk.attach(supervisor)
    supervisor.feed.listen(logs.log_event)
    supervisor.feed.listen(lambda event: _abandon_stuck(event, tree.spec.name))
    try:
        received = await run_program(supervisor, lambda: _announce(tree))
    except ActorError as error:
        print(f"[pyoco-runtime][{error.err_id}] {error}", file=sys.stderr)
        print("next: mend what the crash above names; `pyoco-runtime --check` shows the configuration", file=sys.stderr)
        return 1
    finally:
        with anyio.CancelScope(shield=True):
            await tree.aclose()
    _log.info("stopped", extra={"actor": tree.spec.name})
    return 130 if received is signal.SIGINT else 0


def _abandon_stuck(event: Event, root: str) -> None:
    """A task that ignores cancellation cannot be waited for: everything else is down, so the process ends."""
    if isinstance(event, Stopped) and event.path == root and event.stuck:
        print(f"[pyoco-runtime][ERR-PYOCO-0032] would not stop: {', '.join(event.stuck)}; exiting", file=sys.stderr)
        logging.shutdown()
        os._exit(1)


def _announce(tree: Tree) -> None:
    lines = [f"pyoco-runtime is up as {tree.process}"]
    if tree.http is not None:
        lines.append(f"  http    {tree.http.url}")
    if tree.probe is not None:
        lines.append(f"  probe   {tree.probe.url}/ready")
    lines.append(f"  nats    {', '.join(_masked(url) for url in tree.nats_urls())}{' (embedded)' if tree.nats else ''}")
    for name, listener in (("http", tree.http), ("probe", tree.probe)):
        if listener is not None:
            _log.info("%s is listening on %s", name, listener.url, extra={"actor": tree.spec.name})
    lines.append("  Ctrl-C stops it; see what runs with: pyoco-runtime actors")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _masked(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{'***@' if '@' in rest else ''}{rest.rpartition('@')[2]}"


def _style(settings: Settings) -> logs.LogStyle:
    return logs.LogStyle(
        SERVICE[settings.role],
        json=settings.log_format is LogFormat.JSON,
        utc=settings.log_utc,
        traceback=settings.log_include_traceback,
    )


def show(loaded: Loaded, terminal: Terminal) -> None:
    """Print the tree that would start, and every setting with its source."""
    root = outline(loaded.layout.root, members(loaded.settings))
    terminal.print(f"The configuration is valid. Tree from: {loaded.config_path}\n", highlight=False)
    terminal.print(_draw(root, Drawing(_title(root))))
    table = Table("setting", "value", "from", box=None, padding=(0, 2, 0, 0))
    for env, value, source in shown(loaded):
        table.add_row(env, value, source, style=None if source != "default" else "dim")
    terminal.print()
    terminal.print(table)


def _draw(layout: SupervisorLayout, drawing: Drawing) -> Drawing:
    for child in layout.children:
        branch = drawing.add(_title(child))
        if isinstance(child, SupervisorLayout):
            _draw(child, branch)
    return drawing


def _title(layout: ActorLayout | SupervisorLayout) -> str:
    if isinstance(layout, ActorLayout):
        return f"{layout.name}  [dim]{layout.restart}, {layout.shutdown_sec:g} s to stop[/dim]"
    limit = layout.intensity
    policy = f"{layout.strategy}, {limit.max_restarts} restarts in {limit.within_sec:g} s"
    return f"[bold]{layout.name}[/bold]  [dim]{policy}[/dim]"
