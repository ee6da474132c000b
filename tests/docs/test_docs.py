"""The documentation does what it says: its examples run, its commands work, its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import pyoco_runtime.errors
from pyoco_runtime.errors import PyocoError
from pyoco_runtime.model.house import ProcessReport, report_from
from pyoco_runtime.settings import SETTINGS

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent  # not ROOT/.venv/bin: the tests run on several interpreters
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HTTP_API = ROOT / "docs/how-to/use-the-http-api.md"
"""Its commands build on each other; test_http_api_page.py runs them all."""
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
LIMIT_SEC = 30.0

pytestmark = pytest.mark.xdist_group("docs")  # one process of ours serves all commands of this file


# -- reading the pages -----------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, *kinds: str) -> Iterator[tuple[int, str]]:
    """The fenced blocks of these kinds, with the line that each begins on."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        if found["kind"] in kinds:
            yield text.count("\n", 0, found.start()) + 1, re.sub(f"(?m)^{found['indent']}", "", found["text"])


def commands(page: Path) -> Iterator[str]:
    """Every command line of the page that is meant to be run."""
    for _, text in blocks(page, "console", "sh"):
        for line in text.splitlines():
            if line.startswith("$ "):
                yield line.removeprefix("$ ")


def called(page: Path) -> str:
    """The page as test ids and messages name it."""
    return str(page.relative_to(ROOT))


def clean_environ(**more: str) -> dict[str, str]:
    """The environment without settings of ours, and with these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYOCO_")}
    return {**kept, "PYOCO_LOAD_DOTENV": "0", **more}


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=cwd, env=clean_environ(**environ), capture_output=True, text=True, timeout=LIMIT_SEC, check=False
    )


def check_ran(done: subprocess.CompletedProcess[str], *expected: str) -> None:
    """It ended well and printed these."""
    assert done.returncode == 0, done.stdout + done.stderr
    for text in expected:
        assert text in done.stdout, f"{text!r} is not in:\n{done.stdout}"


# -- examples --------------------------------------------------------------------------------------------------------

_PYTHON = [pytest.param(text, id=f"{called(page)}:{line}") for page in PAGES for line, text in blocks(page, "python")]


@pytest.mark.parametrize("text", _PYTHON)
def test_a_python_example_runs(text: str, tmp_path: Path) -> None:
    """Every Python block of the documentation is a whole program that ends well, without a warning."""
    check_ran(run(sys.executable, "-W", "error", "-c", text, cwd=tmp_path))


EXAMPLES = {
    "supervisor_asyncio.py": ("Restarting", "Stopped"),
    "supervisor_trio.py": ("Restarting", "Stopped"),
    "embed_asyncio.py": ("COMPLETED",),
    "embed_trio.py": ("COMPLETED",),
}
"""What each program says; hello_flow.py is a resolver and no program."""


def test_every_example_is_known() -> None:
    """A new one must be tried here too."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*EXAMPLES, "hello_flow.py"}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_program_runs(name: str, tmp_path: Path) -> None:
    """Every program in examples/ does what it says and ends by itself."""
    check_ran(run(sys.executable, "-W", "error", ROOT / "examples" / name, cwd=tmp_path), *EXAMPLES[name])


# -- links and lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", LINKED, ids=called)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A link to a file finds it, and a link to a heading finds that."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{called(page)} links to {target}, which is not there"
        if anchor:
            assert anchor in _anchors(file), f"{called(page)} links to {target}, which has no such heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", _FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_lists_every_page() -> None:
    """docs/README.md links to all pages of the documentation."""
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in _LINK.findall(index.read_text())}
    assert set((ROOT / "docs").rglob("*.md")) - {index} == linked


def test_the_reference_lists_every_error() -> None:
    """Ids 0001 to 0024 are the contract's; all others are those in errors.py, by the same names."""
    page = (ROOT / "docs/reference/errors.md").read_text()
    ours = {
        (error.number, name)
        for name, error in vars(pyoco_runtime.errors).items()
        if isinstance(error, type) and issubclass(error, PyocoError) and (error.number or 0) > 24
    }
    assert {int(number) for number in re.findall(r"(?m)^\| ERR-PYOCO-(\d{4}) \| [^`]", page)} == set(range(1, 25))
    assert {(int(n), name) for n, name in re.findall(r"(?m)^\| ERR-PYOCO-(\d{4}) \| `(\w+)`", page)} == ours


def test_the_reference_lists_every_option() -> None:
    """docs/reference/cli.md has a row for each setting with an option, and no others but --check."""
    page = (ROOT / "docs/reference/cli.md").read_text()
    rows = set(re.findall(r"(?m)^\| `(--[a-z-]+)` \| (?:`(\w+)`)?", page))
    assert rows == {(each.option, each.env) for each in SETTINGS if each.has_option} | {("--check", "")}


# -- a process to try the commands on --------------------------------------------------------------------------------


@frozen
class House:
    """A process in the role all, on free ports, as the pages expect it on the usual ones."""

    place: Path
    http_url: str
    nats_url: str

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and body of a GET, or of a POST with a body."""
        try:
            with urllib.request.urlopen(f"{self.http_url}{path}", body, timeout=LIMIT_SEC) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def until_ready(self) -> None:
        """Wait until /ready says yes."""
        deadline = time.monotonic() + LIMIT_SEC
        while (answer := self.ask("/ready")) != (200, {"status": "ready"}):
            assert time.monotonic() < deadline, f"not ready: {answer}"
            time.sleep(0.05)  # another process is waited for, and /ready is all that it shows to the outside

    def pyoco_runtime(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the program beside it, on the same NATS."""
        return run(BIN / "pyoco-runtime", *arguments, cwd=self.place, PYOCO_NATS_URL=self.nats_url)


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Read the process's stderr until this appears there; returns all that was read."""
    assert process.stderr is not None
    deadline = time.monotonic() + LIMIT_SEC
    seen = ""
    while text not in seen:
        assert time.monotonic() < deadline, f"{text!r} did not appear:\n{seen}"
        if select.select([process.stderr], [], [], 1.0)[0]:
            piece = os.read(process.stderr.fileno(), 65536).decode()
            assert piece, f"it ended before {text!r} appeared:\n{seen}"
            seen += piece
    return seen


def until_written(file: Path, text: str) -> None:
    """Wait until another process has written this to a file, which tells nobody."""
    deadline = time.monotonic() + LIMIT_SEC
    while text not in file.read_text():
        assert time.monotonic() < deadline, f"{text!r} did not appear:\n{file.read_text()}"
        time.sleep(0.05)


def start(*command: str | Path, cwd: Path, log: Path, **environ: str) -> subprocess.Popen[str]:
    """Start a command in a session of its own, as a terminal would; its stdout goes to `log`."""
    with log.open("w") as stdout:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=clean_environ(**environ),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    """Send a signal to the process and what it started, as a terminal does, and wait; returns the exit code."""
    os.killpg(process.pid, number)
    try:
        process.communicate(timeout=LIMIT_SEC)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    place = tmp_path_factory.mktemp("house")
    command: list[str | Path] = [BIN / "pyoco-runtime", "--role", "all", "--port", "0", "--log-format", "text"]
    process = start(*command, cwd=place, log=place / "log", PYOCO_NATS_CLIENT_PORT="0")
    try:
        said = read_until(process, "Ctrl-C stops it")
        http, nats = (re.search(rf"{name} +(\S+)", said) for name in ("http", "nats"))
        assert http is not None
        assert nats is not None
        found = House(place, http[1], nats[1])
        found.until_ready()
        yield found
    finally:
        code = end(process, signal.SIGTERM) if process.poll() is None else process.returncode
    assert code == 0, (place / "log").read_text()


# -- every command of the pages, and how it is tried -----------------------------------------------------------------


def try_make_demo(house: House) -> None:
    """It starts on free ports, runs the example, and Ctrl-C ends it without a complaint."""
    place = house.place / "demo"
    place.mkdir(exist_ok=True)
    free = {"PYOCO_PORT": "0", "PYOCO_NATS_CLIENT_PORT": "0", "PYOCO_NATS_STORE_DIR": str(place / "nats")}
    process = start(*make("demo"), cwd=ROOT, log=place / "log", **free)
    try:
        until_written(place / "log", "Ctrl-C stops everything")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=LIMIT_SEC)[1]
    log = (place / "log").read_text()
    assert "greet SUCCEEDED" in log
    assert "Dashboard: http://127.0.0.1:" in log
    assert log.rstrip().endswith("Stopped.")
    assert "***" not in said, said  # make has nothing to complain about


def try_make_test(house: House) -> None:
    """It would run pytest over tests/; a test that runs all tests would not end."""
    done = run(*make("test"), "--dry-run", cwd=ROOT)
    check_ran(done, "-m pytest", " tests")


def make(target: str) -> list[str | Path]:
    """Make, on the interpreter that runs this test, without setting it up again."""
    program = shutil.which("make")
    if program is None:
        pytest.skip("there is no make on this machine")
    venv = BIN.parent
    return [program, f"VENV={venv}", "-o", f"{venv}/.ready", target]


def try_health(house: House) -> None:
    """It answers as the page says."""
    assert house.ask("/health") == (200, {"status": "ok"})


def try_ready(house: House) -> None:
    """It answers as the page says."""
    house.until_ready()


def try_submit(house: House) -> None:
    """A run is accepted."""
    house.until_ready()
    status, body = house.ask("/runs", b'{"flow_name": "hello"}')
    assert (status, body["status"]) == (200, "PENDING")


def try_list(house: House) -> None:
    """A run that was accepted is in the list."""
    house.until_ready()
    _, submitted = house.ask("/runs", b'{"flow_name": "hello"}')
    _, runs = house.ask("/runs")
    assert submitted["run_id"] in [run["run_id"] for run in runs]


def try_actors(house: House) -> None:
    """It shows the whole tree."""
    house.until_ready()
    done = house.pyoco_runtime("actors")
    check_ran(done, "restarts", "runtime", "nats", "link", "gateway", "http", "worker", "console")


def trying_restart(actor: str, path: str) -> Callable[[House], None]:
    """The executor for a restart of this actor."""

    def try_restart(house: House) -> None:
        house.until_ready()
        done = house.pyoco_runtime("restart", "all", actor)
        check_ran(done, f"{path} of all-", "was restarted", "kept running")
        lines = re.findall(r"(?m)^runtime\S* +running .*$", _stripped(done.stdout))
        assert [line for line in lines if not line.endswith("kept running")] == [
            line for line in lines if line.endswith(" restarted")
        ], done.stdout

    return try_restart


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def try_kill(house: House) -> None:
    """The server comes back, with one more restart and its crash on show; http was not restarted."""
    house.until_ready()
    before = _restarts(house)
    subprocess.run("kill -9 $(cat .pyoco/nats/pyoco.lock)", shell=True, cwd=house.place, check=True, timeout=LIMIT_SEC)
    deadline = time.monotonic() + LIMIT_SEC
    while (after := _restarts(house))["runtime/nats"] == before["runtime/nats"]:
        assert time.monotonic() < deadline, f"nats was not restarted: {after}"
    assert after == {**before, "runtime/nats": before["runtime/nats"] + 1}
    check_ran(house.pyoco_runtime("actors"), "NatsServerDied")


def _restarts(house: House) -> dict[str, int]:
    """How often each actor was restarted, by path; asked again while NATS is away."""
    deadline = time.monotonic() + LIMIT_SEC
    while not (trees := _trees(house)):
        assert time.monotonic() < deadline, "nobody answers on this NATS"
    return {actor.path: actor.restarts for report in trees for actor in report.tree.walk()}


def _trees(house: House) -> list[ProcessReport]:
    done = house.pyoco_runtime("actors", "--output", "json")
    return [report_from(json.dumps(each).encode()) for each in json.loads(done.stdout or "[]")]


def try_check(house: House) -> None:
    """The file of the page is valid, and what it changes is on show."""
    page = ROOT / "docs/how-to/change-the-tree.md"
    (house.place / "my-tree.toml").write_text(next(text for _, text in blocks(page, "toml")))
    done = house.pyoco_runtime("--config", "my-tree.toml", "--check")
    check_ran(done, "my-tree.toml", "3 restarts in 30 s", "30 s to stop", "PYOCO_NATS_URL")


COMMANDS: dict[str, Callable[[House], None]] = {
    "make demo": try_make_demo,
    "make test": try_make_test,
    "curl http://127.0.0.1:8000/health": try_health,
    "curl http://127.0.0.1:8000/ready": try_ready,
    """curl -X POST http://127.0.0.1:8000/runs -d '{"flow_name": "hello"}'""": try_submit,
    "curl http://127.0.0.1:8000/runs": try_list,
    ".venv/bin/pyoco-runtime actors": try_actors,
    ".venv/bin/pyoco-runtime restart all http": trying_restart("http", "runtime/gateway/http"),
    ".venv/bin/pyoco-runtime restart all runtime/gateway/http": trying_restart(
        "runtime/gateway/http", "runtime/gateway/http"
    ),
    ".venv/bin/pyoco-runtime restart all link": trying_restart("link", "runtime/link"),
    "kill -9 $(cat .pyoco/nats/pyoco.lock)": try_kill,
    ".venv/bin/pyoco-runtime --config my-tree.toml --check": try_check,
}
"""How each command of README.md and docs/ is tried. A command that is not here fails the test below."""


def test_every_command_is_known() -> None:
    """The pages show no command that this file does not try, and this file tries none that they do not show."""
    assert {command for page in PAGES if page != HTTP_API for command in commands(page)} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works(command: str, house: House) -> None:
    """Every command of the documentation does what its page says."""
    COMMANDS[command](house)
