"""`pyoco-runtime demo`: everything on this machine, one run to watch, and what to try next."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
from attrs import evolve, field, frozen
from rich.console import Console

from pyoco_runtime import logs
from pyoco_runtime.cli.demo_view import view_for
from pyoco_runtime.cli.run import SERVICE, configured, supervised
from pyoco_runtime.client import AsyncPyocoHttpClient
from pyoco_runtime.client.answers import Run
from pyoco_runtime.client.events import RunChanged
from pyoco_runtime.core import run_program
from pyoco_runtime.embed.readiness import Readiness
from pyoco_runtime.errors import ActorError, AddressInUse, StoreLocked, UserError
from pyoco_runtime.gateway.listener import Listener
from pyoco_runtime.messages import Language, language, text
from pyoco_runtime.nats_server import ServerConfig, check_free
from pyoco_runtime.settings import AuthMode, Loaded, Role, Settings
from pyoco_runtime.tree import Tree, plant

FLOW = Path("examples/hello/flow.yaml")
RESOLVER = "examples/hello_flow.py:resolve"
LOG = Path(".pyoco/demo.log")
FLOW_NAME = "hello"
USUAL_HTTP, USUAL_NATS = 8000, 4222
"""Where the commands look if they are not told."""

_STYLES = {"0251": "yellow", "0252": "yellow", "0253": "yellow", "0256": "bold green", "0257": "bold red"}
_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none: it is to work as it is."""


def main(args: argparse.Namespace) -> int:
    """Start everything, show a run, and stay until a signal stops it; returns the exit code. Raises UserError."""
    if not FLOW.is_file():
        raise UserError(f"there is no {FLOW} here: run the demo in the directory of the repository")
    wanted = configured({"role": Role.ALL.value})
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        terminal = Console(file=stack.enter_context(os.fdopen(os.dup(sys.stdout.fileno()), "w")), highlight=False)
        say = Speaker(terminal)
        say("0250")
        settings = _settled(wanted.settings, say, stack)
        own_store = settings.nats_store_dir != wanted.settings.nats_store_dir  # then LOG is another demo's
        log = settings.nats_store_dir.with_suffix(".log") if own_store else LOG
        stack.enter_context(_output_to(log))
        logs.set_up(logs.LogStyle(SERVICE[Role.ALL], json=False), settings.log_level, sys.stdout)
        tree = stack.enter_context(_planted(evolve(wanted, settings=settings)))
        code = anyio.run(
            _serve, tree, say, log, backend="asyncio", backend_options={"use_uvloop": sys.platform != "win32"}
        )
        say("0260")
    return code


@frozen
class Speaker:
    """Says things in the user's language."""

    terminal: Console
    _lang: Language = field(factory=language)

    def __call__(self, number: str, **values: object) -> None:
        """Print this message of the catalogue."""
        self.line(text(f"MSG-PYOCO-{number}", self._lang, **values), _STYLES.get(number))

    def line(self, words: str, style: str | None = None) -> None:
        """Print this, and let the terminal wrap it: what was wrapped by us could not be copied."""
        self.terminal.print(words, style=style, markup=False, soft_wrap=True)


# -- where everything goes --------------------------------------------------------------------------------------------


def _settled(settings: Settings, say: Speaker, stack: ExitStack) -> Settings:
    """The settings with ports and a store that nobody else has. The demo has a server of its own, and needs no key."""
    resolver = settings.flow_resolver or (RESOLVER if Path(RESOLVER.partition(":")[0]).is_file() else None)
    settings = evolve(settings, nats_url=None, http_auth_mode=AuthMode.NONE, flow_resolver=resolver)
    if _is_taken(lambda: Listener(settings.host, settings.port).close()):
        say("0251", port=settings.port)
        settings = evolve(settings, port=0)
    nowhere = ServerConfig(LOG.parent / "nowhere", settings.nats_listen_host, settings.nats_client_port)
    if _is_taken(lambda: check_free(nowhere)):
        say("0252", port=settings.nats_client_port)
        settings = evolve(settings, nats_client_port=0)
    if _is_taken(lambda: check_free(ServerConfig(settings.nats_store_dir, settings.nats_listen_host, 0))):
        other = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="demo-", dir=LOG.parent)))
        say("0253", store=settings.nats_store_dir, other=other)
        settings = evolve(settings, nats_store_dir=other)
    return settings


def _is_taken(take: Callable[[], None]) -> bool:
    try:
        take()
    except (AddressInUse, StoreLocked):
        return True
    return False


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Have all that this process and its children write go to a file, while somebody else has the terminal."""
    saved = {number: os.dup(number) for number in (1, 2)}
    try:
        with path.open("w") as file:
            for number in saved:
                os.dup2(file.fileno(), number)
            yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, terminal in saved.items():
            os.dup2(terminal, number)
            os.close(terminal)


@contextmanager
def _planted(loaded: Loaded) -> Iterator[Tree]:
    tree = plant(loaded)
    try:
        yield tree
    finally:
        tree.close()


# -- the run ----------------------------------------------------------------------------------------------------------


async def _serve(tree: Tree, say: Speaker, log: Path) -> int:
    supervisor = supervised(tree, "pyoco-runtime demo")
    demo = Demo(tree, say, log)
    try:
        received = await run_program(supervisor, demo.note_up, demo.show)
    except ActorError as error:
        say("0261", problem=error, log=log)
        return 1
    finally:
        with anyio.CancelScope(shield=True):
            await tree.aclose()
    return 130 if received is signal.SIGINT else 0


class Demo:
    """What is shown while the tree runs."""

    def __init__(self, tree: Tree, say: Speaker, log: Path) -> None:
        assert tree.http is not None
        assert tree.pulling is not None
        self._tree = tree
        self._http = tree.http
        self._say = say
        self._log = log
        self._workflow = FLOW.read_text()
        self._readiness = Readiness()
        tree.pulling.tell(self._readiness.tell)

    def note_up(self) -> None:
        """All actors have started."""
        _log.info("http is listening on %s", self._http.url)

    async def show(self) -> None:
        """Submit the flow, show its run, say what to do next, and wait for ever. Raises ClientError."""
        await self._readiness.wait()
        self._say("0254", http=self._http.url, nats=self._nats, log=self._log)
        async with AsyncPyocoHttpClient(self._http.url) as client:
            accepted = await client.submit_run_yaml(self._workflow, flow_name=FLOW_NAME)
            self._say("0255", flow=FLOW, run_id=accepted["run_id"])
            last = await self._watched(client, accepted["run_id"])
        self._conclude(last)
        await anyio.sleep_forever()

    async def _watched(self, client: AsyncPyocoHttpClient, run_id: str) -> Run:
        view = view_for(self._say.terminal)
        with view.showing():
            async for event in client.watch(run_id, include_records=True):
                if isinstance(event, RunChanged):
                    view.show(event.run)
                    if event.is_terminal:
                        return event.run
        return await client.get_run(run_id)

    def _conclude(self, run: Run) -> None:
        took_sec = (run["end_time"] or 0.0) - (run["start_time"] or 0.0)
        is_well = run["status"] == "COMPLETED"
        self._say("0256" if is_well else "0257", status=run["status"], sec=f"{took_sec:.1f}", error=run["error"])
        self._say("0258", url=self._http.url)
        for command in self._commands():
            self._say.line(f"  {command}", "cyan")
        self._say("0259")

    def _commands(self) -> Iterator[str]:
        """Three that work as they stand, in another terminal in this directory."""
        client, runtime = _program("pyoco-client"), _program("pyoco-runtime")
        server = "" if self._http.port == USUAL_HTTP else f" --server {self._http.url}"
        nats = "" if self._nats.endswith(f"127.0.0.1:{USUAL_NATS}") else f" --nats-url {self._nats}"
        yield f"{client}{server} list --output table"
        yield f"{client}{server} submit --flow-name hello --param name=you"
        yield f"{runtime} actors{nats}"

    @property
    def _nats(self) -> str:
        return ", ".join(self._tree.nats_urls())


def _program(name: str) -> str:
    """How to call a program of this environment from here."""
    found = Path(sys.executable).parent / name
    return str(found.relative_to(Path.cwd())) if found.is_relative_to(Path.cwd()) else str(found)
