"""`pyoco-runtime --role ...`: starts the tree, or shows what would start."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import anyio
from rich.console import Console as Terminal
from rich.table import Table
from rich.tree import Tree as Drawing

from pyoco_runtime import logs
from pyoco_runtime.cli.run_once import RunOnce
from pyoco_runtime.core import Event, Stopped, Supervisor, run_program
from pyoco_runtime.errors import ActorError
from pyoco_runtime.layout import ActorLayout, SupervisorLayout
from pyoco_runtime.nats_server import NatsServer
from pyoco_runtime.settings import SETTINGS, Loaded, LogFormat, Role, Setting, Settings, load, shown
from pyoco_runtime.single_run import SingleRun
from pyoco_runtime.tree import KNOWN, Tree, members, outline, plant

_log = logging.getLogger(__name__)
SERVICE = {Role.GATEWAY: "pyoco-server:http", Role.WORKER: "pyoco-server:worker", Role.ALL: "pyoco-server:all"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every setting that has an option, from the one table of settings."""
    add_settings(parser, (setting for setting in SETTINGS if setting.has_option))
    add_check(parser)


def add_settings(parser: argparse.ArgumentParser | argparse._ArgumentGroup, settings: Iterable[Setting]) -> None:
    """An option for each of these settings."""
    for setting in settings:
        text = f"{setting.doc} [{setting.env}; default {setting.default}]"
        parser.add_argument(setting.option, dest=setting.name, help=text.replace("%", "%%"))


def add_check(parser: argparse.ArgumentParser) -> None:
    """The option that starts nothing."""
    parser.add_argument("--check", action="store_true", help="check the configuration, show it and the tree, and exit")


def main(args: argparse.Namespace) -> int:
    """Start the tree and run until a signal stops it."""
    given = {key: value for key, value in vars(args).items() if key != "check" and value is not None}
    return start(configured(given), only_check=args.check)


def configured(given: Mapping[str, str]) -> Loaded:
    """The settings of this process with these options. Raises UserError."""
    return load(given, os.environ, Path.cwd(), KNOWN)


def start(
    loaded: Loaded, *, only_check: bool = False, prog: str = "pyoco-runtime", once_sec: float | None = None
) -> int:
    """Start the tree and run until a signal stops it, or only show it; returns the exit code. Raises UserError.

    With `once_sec` the worker takes at most one run, for which it looks that long, and the program ends after it.
    """
    if only_check:
        show(loaded, Terminal())
        return 0
    settings = loaded.settings
    logs.set_up(_style(settings), settings.log_level)
    sys.stdout = sys.stderr  # it belongs to the log lines: what flows print in threads of ours must not come between
    single = None if once_sec is None else SingleRun()
    tree = plant(loaded, single=single)
    once = None if single is None or once_sec is None else RunOnce(tree, single, once_sec)
    try:
        return anyio.run(
            _serve, tree, prog, once, backend="asyncio", backend_options={"use_uvloop": sys.platform != "win32"}
        )
    finally:
        tree.close()


def supervised(tree: Tree, prog: str) -> Supervisor:
    """The supervisor of a program's tree, whose events are logged; one that cannot be stopped ends the process."""
    supervisor = Supervisor(tree.spec, world=tree.world)
    tree.desk.attach(supervisor)
    supervisor.feed.listen(logs.log_event)
    supervisor.feed.listen(lambda event: _abandon_stuck(event, tree.spec.name, prog))
    return supervisor


async def _serve(tree: Tree, prog: str, once: RunOnce | None) -> int:
    supervisor = supervised(tree, prog)
    until = anyio.sleep_forever if once is None else once.done
    try:
        received = await run_program(supervisor, lambda: _announce(tree, prog), until)
    except ActorError as error:
        print(f"[{prog}][{error.err_id}] {error}", file=sys.stderr)
        print("next: mend what the crash above names; `pyoco-runtime --check` shows the configuration", file=sys.stderr)
        return 1
    finally:
        with anyio.CancelScope(shield=True):
            await tree.aclose()
    _log.info("stopped", extra={"actor": tree.spec.name})
    if once is not None and once.problem is not None:
        raise once.problem
    return 130 if received is signal.SIGINT else 0


def _abandon_stuck(event: Event, root: str, prog: str) -> None:
    """A task that ignores cancellation cannot be waited for: everything else is down, so the process ends."""
    if isinstance(event, Stopped) and event.path == root and event.stuck:
        print(f"[{prog}][ERR-PYOCO-0032] would not stop: {', '.join(event.stuck)}; exiting", file=sys.stderr)
        logging.shutdown()
        os._exit(1)


def _announce(tree: Tree, prog: str) -> None:
    lines = [f"{prog} is up as {tree.process}"]
    if tree.http is not None:
        lines.append(f"  http    {tree.http.url}")
    if tree.probe is not None:
        lines.append(f"  probe   {tree.probe.url}/ready")
    lines.append(f"  nats    {', '.join(_masked(url) for url in tree.nats_urls())}{_started_by(tree.nats)}")
    for name, listener in (("http", tree.http), ("probe", tree.probe)):
        if listener is not None:
            _log.info("%s is listening on %s", name, listener.url, extra={"actor": tree.spec.name})
    lines.append("  Ctrl-C stops it; see what runs with: pyoco-runtime actors")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _started_by(server: NatsServer | None) -> str:
    if server is None:
        return ""
    return " (by nats-bootstrap)" if server.config.through else " (embedded)"


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
