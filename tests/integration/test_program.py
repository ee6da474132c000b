"""The program as people start it: with the real nats-server, signals, kill -9, and bad input."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.programs import flat, nats_url_of, program, run, trees, wait_ready

FREE = {"PYOCO_NATS_CLIENT_PORT": "0", "PYOCO_PORT": "0", "PYOCO_WORKER_PROBE_PORT": "0"}


def test_role_all_starts_with_an_embedded_server_and_sigterm_stops_it(tmp_path: Path) -> None:
    """It says where it listens, is ready, and stops in order with exit 0; the store stays."""
    with program(tmp_path, "--role", "all", **FREE) as started:
        url = started.url()
        started.until("connected to NATS")
        assert httpx.get(f"{url}/health").json() == {"status": "ok"}
        assert httpx.get(f"{url}/ready").status_code == 200
        assert started.stop(signal.SIGTERM) == 0
    messages = [line["message"] for line in started.lines]
    assert messages[-1] == "stopped"
    assert any("Server Exiting" in message for message in messages)
    assert all("actor" in line for line in started.lines)
    assert (tmp_path / ".pyoco" / "nats" / "jetstream").is_dir()


def test_ctrl_c_stops_it_with_130(tmp_path: Path) -> None:
    """The contract's exit code for an interrupt."""
    with program(tmp_path, **FREE) as started:
        started.url()
        assert started.stop(signal.SIGINT) == 130


def test_it_stops_as_pid_1_too(tmp_path: Path) -> None:
    """In a container the kernel gives PID 1 no default handlers."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-pf", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make a PID namespace")
    with program(tmp_path, prefix=[unshare, "-pf", "--kill-child"], **FREE) as started:
        started.url()
        init = _only_child(started.process.pid)
        os.kill(init, signal.SIGTERM)
        assert started.finish() == 0


def _only_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _server_of(pid: int) -> int:
    """The embedded nats-server among the children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(int(child) for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "nats-server")


def test_kill_9_of_the_server_under_a_running_tree(tmp_path: Path) -> None:
    """The embedded server comes back on its port, the link reconnects, and nothing else restarts."""
    with program(tmp_path, **FREE) as started:
        url = started.url()
        started.until("connected to NATS")
        nats_url = nats_url_of(started)
        server = _server_of(started.process.pid)
        os.kill(server, signal.SIGKILL)
        crash = started.until("crashed: NatsServerDied")
        assert crash["actor"] == "runtime/nats"
        assert httpx.get(f"{url}/health").status_code == 200
        started.until("connection to NATS restored")
        wait_ready(url)
        actors = flat(trees(nats_url, tmp_path)[0]["tree"])
        assert {path: actor["restarts"] for path, actor in actors.items() if actor["restarts"]} == {"runtime/nats": 1}
        assert actors["runtime/nats"]["last_crash"]["type"] == "NatsServerDied"
        assert started.stop(signal.SIGTERM) == 0


def test_actors_shows_every_process_and_restart_restarts_one_actor(tmp_path: Path) -> None:
    """A gateway and a worker on one NATS; a restart of http leaves its siblings running."""
    with (
        nats_server(tmp_path / "store") as nats,
        program(tmp_path, "--role", "gateway", "--nats-url", nats.url, PYOCO_PROCESS_NAME="gate", **FREE) as gateway,
        program(tmp_path, "--role", "worker", "--nats-url", nats.url, PYOCO_PROCESS_NAME="work", **FREE) as worker,
    ):
        url = gateway.url()
        probe = worker.url()
        gateway.until("connected to NATS")
        worker.until("connected to NATS")
        assert httpx.get(f"{probe}/ready").status_code == 200
        found = trees(nats.url, tmp_path)
        assert [process["process"] for process in found] == ["gate", "work"]
        assert set(flat(found[0]["tree"])) == {"runtime", "runtime/link", "runtime/gateway", "runtime/gateway/http"} | {
            *(
                f"runtime/gateway/{name}"
                for name in ("run-index", "worker-index", "letter-index", "queue-sampler", "reconciler")
            ),
            "runtime/console",
        }
        for actor in ("http", "runtime/link", "console"):
            done = run("restart", "ga", actor, "--nats-url", nats.url, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "0 -> 1" in done.stdout
            assert "kept running" in done.stdout
        actors = flat(trees(nats.url, tmp_path)[0]["tree"])
        assert {path for path, actor in actors.items() if actor["restarts"] == 1} == {
            "runtime/gateway/http",
            "runtime/link",
            "runtime/console",
        }
        assert httpx.get(f"{url}/ready").status_code == 200
        done = run("restart", "gate", "htpp", "--nats-url", nats.url, cwd=tmp_path)
        assert done.returncode == 1
        assert "did you mean 'http'" in done.stderr
        table = run("actors", "--nats-url", nats.url, cwd=tmp_path)
        assert "work" in table.stdout


def test_the_tree_starts_while_nats_is_away_and_recovers(tmp_path: Path) -> None:
    """/health answers, /ready says what is missing, and all is well when NATS comes."""
    with nats_server(tmp_path / "store") as nats:
        nats.kill()
        with program(tmp_path, "--role", "gateway", "--nats-url", nats.url, **FREE) as started:
            url = started.url()
            assert httpx.get(f"{url}/health").status_code == 200
            answer = httpx.get(f"{url}/ready")
            assert answer.status_code == 503
            assert "nats" in answer.text
            nats.restart()
            started.until("connected to NATS")
            wait_ready(url)
            nats.kill()
            started.until("connection to NATS lost")
            assert httpx.get(f"{url}/ready").status_code == 503
            nats.restart()
            started.until("connection to NATS restored")
            wait_ready(url)


def test_a_second_process_on_the_same_store_is_refused(tmp_path: Path) -> None:
    """A clear error, exit 1, and the first one goes on."""
    with program(tmp_path, **FREE) as first:
        url = first.url()
        second = run(cwd=tmp_path, env={**os.environ, **FREE})
        assert second.returncode == 1
        assert "ERR-PYOCO-0028" in second.stderr
        assert httpx.get(f"{url}/health").status_code == 200


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """Before anything starts."""
    with program(tmp_path, **FREE) as first:
        port = first.url().rpartition(":")[2]
        second = run("--role", "gateway", "--port", port, cwd=tmp_path)
    assert second.returncode == 1
    assert "ERR-PYOCO-0027" in second.stderr
    assert "--port" in second.stderr


def test_a_tree_that_gives_up_exits_with_1_and_says_why(tmp_path: Path) -> None:
    """Too many restarts end the process, so that systemd or Kubernetes takes over."""
    (tmp_path / "supervisor.toml").write_text("[supervisors.runtime]\nmax_restarts = 1\nwithin_sec = 600.0\n")
    with program(tmp_path, **FREE) as started:
        started.until("connected to NATS")
        os.kill(_server_of(started.process.pid), signal.SIGKILL)
        started.until("connection to NATS restored")
        os.kill(_server_of(started.process.pid), signal.SIGKILL)
        stderr = started.process.stderr
        assert stderr is not None
        assert started.process.wait(timeout=60) == 1
        told = stderr.read()
    assert "ERR-PYOCO-0031" in told
    assert "runtime/nats" in told


def test_killed_with_9_it_starts_again_at_once(tmp_path: Path) -> None:
    """The embedded server dies with its parent; the next start finds port and store free and the data there."""
    with program(tmp_path, **FREE) as first:
        first.until("connected to NATS")
        port = nats_url_of(first).rpartition(":")[2]
        first.process.kill()
        first.process.wait()
        with program(tmp_path, **{**FREE, "PYOCO_NATS_CLIENT_PORT": port}) as second:
            second.until("connected to NATS")
            assert not any("made what was missing" in line["message"] for line in second.lines)


def test_a_second_signal_stops_it_now(tmp_path: Path) -> None:
    """A request that would hold up the drain does not hold up the second Ctrl-C."""
    (tmp_path / "supervisor.toml").write_text("[actors.http]\nshutdown_sec = 600.0\n")
    with program(tmp_path, **FREE) as started:
        host, _, port = started.url().removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as held:
            held.sendall(b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhal")
            started.until("connected to NATS")
            started.process.send_signal(signal.SIGTERM)
            assert started.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[supervisors.gateway]\nstrateyg = 1\n", "strategy"),
        ('[supervisors.gateway]\nstrategy = "one_for_oen"\n', "one_for_one"),
        ('[supervisors.runtime]\nchildren = ["link", "link"]\n', "link"),
        ('[supervisors.gateway]\nchildren = ["worker"]\n[supervisors.worker]\nchildren = ["gateway"]\n', "gateway"),
        ("[actors.link]\nshutdown_sec = -1\n", "shutdown_sec"),
        ("[actors.link\n", "line 1"),
    ],
)
def test_a_bad_supervisor_toml_exits_with_1_and_names_the_place(tmp_path: Path, toml: str, says: str) -> None:
    """File, place, what was found and what would be right; nothing has started."""
    (tmp_path / "supervisor.toml").write_text(toml)
    for extra in ([], ["--check"]):
        done = run("--role", "gateway", *extra, cwd=tmp_path)
        assert done.returncode == 1
        assert "ERR-PYOCO-0026" in done.stderr
        assert "supervisor.toml" in done.stderr
        assert says in done.stderr
        assert done.stdout == ""


def test_check_shows_the_tree_and_where_each_value_came_from(tmp_path: Path) -> None:
    """And never a secret."""
    (tmp_path / ".env").write_text("PYOCO_CONCURRENCY=7\nPYOCO_WORKER_PROBE_PORT=8081\n")
    (tmp_path / "supervisor.toml").write_text('[settings]\nlog_level = "DEBUG"\n[actors.link]\nshutdown_sec = 9.0\n')
    env = {**os.environ, "PYOCO_AUTH_PEPPER": "hunter2hunter2", "PYOCO_TAGS": "a,b", "COLUMNS": "200"}
    done = run("--check", "--role", "worker", "--nats-url", "nats://me:pw@h:1", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    for text in ("runtime", "link", "9 s to stop", "worker", "probe", "PYOCO_CONCURRENCY", ".env", "--nats-url"):
        assert text in done.stdout
    assert "http" not in done.stdout.split("setting")[0]
    assert "hunter2" not in done.stdout + done.stderr
    assert "me:pw" not in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--role", "boss"], "gateway"),
        (["--port", "many"], "PYOCO_PORT"),
        (["--prot", "1"], "for example: pyoco-runtime --role all"),
        (["restart", "only-one"], "for example"),
        (["actors", "--nats-url", "nats://127.0.0.1:1"], "pyoco-runtime --role all"),
    ],
)
def test_bad_arguments_exit_with_1_and_an_example(tmp_path: Path, args: list[str], says: str) -> None:
    """stderr says what to change."""
    done = run(*args, cwd=tmp_path)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_help_shows_a_smallest_example_and_every_option_its_variable(tmp_path: Path) -> None:
    """What a newcomer reads first."""
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "pyoco-runtime --role all" in done.stdout
    for option in ("config", "nats-url", "host", "port", "tags", "worker-id", "flow-resolver", "concurrency"):
        assert f"--{option}" in done.stdout
        assert f"PYOCO_{option.upper().replace('-', '_')}" in done.stdout
