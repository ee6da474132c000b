"""The program `pyoco-server`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import httpx
import pytest

from tests.integration.programs import wait_ready
from tests.integration.pyoco_programs import run, running


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def nats_options() -> tuple[list[str], int, int]:
    client, monitor = free_port(), free_port()
    return (
        ["--with-nats-bootstrap", "--nats-client-port", str(client), "--nats-http-port", str(monitor)],
        client,
        monitor,
    )


def is_open(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def test_it_starts_while_nats_is_away(tmp_path: Path) -> None:
    """The published program ends then; ours is alive, says 503, and waits."""
    with running("server", "--port", "0", "--nats-url", "nats://127.0.0.1:1", cwd=tmp_path) as gateway:
        url = gateway.url()
        assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.get(f"{url}/ready").status_code == 503
        assert gateway.stop(signal.SIGTERM) == 0


def test_with_the_embedded_server(tmp_path: Path) -> None:
    """Without nats-bootstrap on this machine: a NATS with its monitoring pages, which ends with the program."""
    options, client, monitor = nats_options()
    with running("server", "up", "--port", "0", *options, cwd=tmp_path, PATH=os.defpath) as gateway:
        wait_ready(gateway.url())
        assert httpx.get(f"http://127.0.0.1:{monitor}/varz").json()["port"] == client
        assert gateway.stop(signal.SIGTERM) == 0
    assert not is_open(client)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_with_nats_bootstrap(tmp_path: Path, number: signal.Signals) -> None:
    """A program of that name is given the published arguments; its server ends with ours, however that ends."""
    program = tmp_path / "bin" / "nats-bootstrap"
    program.parent.mkdir()
    program.write_text(BOOTSTRAP.format(python=sys.executable))
    program.chmod(0o755)
    options, client, _ = nats_options()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    with running(
        "server", "--port", "0", *options, cwd=tmp_path, PATH=path, PYOCO_NATS_STORE_DIR=str(tmp_path / "js")
    ) as gateway:
        wait_ready(gateway.url())
        said = (tmp_path / "said").read_text().split()
        assert said[:3] == ["up", "--", "-js"]
        server = int((tmp_path / "pid").read_text())
        code = gateway.stop(number)
        assert code == (0 if number is signal.SIGTERM else -signal.SIGKILL)
    _until_gone(server)
    assert not is_open(client)


BOOTSTRAP = """#!{python}
# as nats-bootstrap 0.1.0: starts the server as a child, and leaves it behind when it is asked to end
import pathlib, subprocess, sys
pathlib.Path("said").write_text(" ".join(sys.argv[1:]))
child = subprocess.Popen(["nats-server", *sys.argv[3:]])
pathlib.Path("pid").write_text(str(child.pid))
sys.exit(child.wait())
"""


def _until_gone(pid: int) -> None:
    """Wait for a process that is no child of ours; it may be one that nobody has waited for yet."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        import select

        assert select.select([watched], [], [], 20)[0], "the nats-server was left behind"
    finally:
        os.close(watched)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["down"], "for example: pyoco-server up"),
        (["--port", "many"], "is not a whole number"),
        (["up", "--with-nats-bootstrap", "--nats-url", "nats://127.0.0.1:9"], "leave --nats-url out"),
    ],
)
def test_a_wrong_command_line_is_explained(tmp_path: Path, arguments: list[str], said: str) -> None:
    """Exit 1, and stderr says what would be right."""
    done = run("server", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


def test_help_and_check(tmp_path: Path) -> None:
    """--help has the smallest example; --check takes every published option and starts nothing."""
    assert "smallest working example" in run("server", "--help", cwd=tmp_path).stdout
    published = ["up", "--host", "127.0.0.1", "--port", "8000", "--log-level", "trace", "--dashboard-lang", "ja"]
    done = run(
        "server", *published, "--with-nats-bootstrap", "--nats-listen-host", "127.0.0.1", "--check", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "8222" in done.stdout
