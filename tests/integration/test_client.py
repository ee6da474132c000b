"""The client as people use it: on a real gateway of ours and on the published one, which are killed and started."""

from __future__ import annotations

import itertools
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from attrs import frozen

from pyoco_runtime import AsyncPyocoHttpClient, PyocoHttpClient
from pyoco_runtime.client import GatewayRefused, ListReady, RunChanged, RunListed, WaitTimeout
from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import PEER, Gateway, gateway, good, until
from tests.integration.programs import BIN, environment
from tests.integration.test_wheels import name as wheel_name
from tests.integration.test_wheels import wheel_of
from tests.integration.worker_client import PATIENCE_SEC, worker

pytestmark = pytest.mark.xdist_group("client")  # the processes of the house serve all tests of this file

PAGE = Path(__file__).parents[2] / "docs/how-to/use-the-python-client.md"


@frozen
class House:
    """A gateway and a worker on one NATS."""

    place: Path
    nats_url: str
    gateway: Gateway


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    place = tmp_path_factory.mktemp("client")
    with (
        nats_server(place / "store") as nats,
        worker(place, nats.url),
        gateway(place, nats.url, name="g1") as started,
    ):
        until(lambda: good(started.http.get("/workers")), lambda found: len(found) == 1)
        yield House(place, nats.url, started)


@pytest.fixture
def client(house: House) -> Iterator[PyocoHttpClient]:
    with PyocoHttpClient(house.gateway.url) as made:
        yield made


@contextmanager
def published(house: House, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The published gateway."""
    program = PEER.with_name("pyoco-server")
    if not program.exists():
        pytest.skip("the published package is not installed in .venv-peers")
    command = [str(program), "up", "--host", "127.0.0.1", "--port", str(port), "--nats-url", house.nats_url]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=house.place, env=environment(PYOCO_NATS_URL=house.nats_url), stdout=quiet, stderr=quiet
    )
    try:
        until(lambda: answers(port), bool)
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_SEC)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Listener:
    """A thread that watches a run."""

    def __init__(self, client: PyocoHttpClient, run_id: str) -> None:
        self.events: list[Any] = []
        self.problem: Exception | None = None
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(client, run_id), daemon=True)
        self._thread.start()
        assert self._first.wait(PATIENCE_SEC)

    def statuses(self) -> list[str]:
        """What it was told until the run has ended."""
        self._thread.join(PATIENCE_SEC)
        assert not self._thread.is_alive(), self.events
        assert self.problem is None, repr(self.problem)
        runs = [event.run for event in self.events if isinstance(event, RunChanged)]
        assert all(one != other for one, other in itertools.pairwise(runs))
        return [run["status"] for run in runs]

    def _listen(self, client: PyocoHttpClient, run_id: str) -> None:
        try:
            for event in client.watch(run_id):
                self.events.append(event)
                self._first.set()
        except Exception as error:  # noqa: BLE001 - told to the test
            self.problem = error


def test_a_run_from_its_submission_to_its_end(client: PyocoHttpClient) -> None:
    """Submit, wait, read, list; the dicts are those of the contract."""
    run_id = client.submit_run("hello", {"name": "Ada"})["run_id"]
    assert client.wait(run_id, 60)["status"] == "COMPLETED"
    assert client.get_run_with_records(run_id)["task_records"]["greet"]["output"] == "Hello, Ada!"
    assert client.get_tasks(run_id)["tasks"] == {"greet": "SUCCEEDED", "count": "SUCCEEDED"}
    assert run_id in [run["run_id"] for run in client.list_runs(flow="hello")]
    assert client.list_runs_vnext(updated_after=0, limit=1)["items"]
    assert client.submit_batch([{"flow_name": "hello"}, {"flow_name": ""}])["refused"] == 1


def test_the_same_key_makes_one_run(client: PyocoHttpClient) -> None:
    """Our gateway honours the key that the client sends."""
    one = client.submit_run("hello", idempotency_key="client-1")
    assert client.submit_run("hello", idempotency_key="client-1") == one


def test_the_house_and_its_letters(client: PyocoHttpClient) -> None:
    """Health, readiness, figures, actors, workers; a failed run's letter is read, replayed and dropped."""
    assert client.health() == {"status": "ok"}
    assert client.ready() == {"status": "ready", "missing": []}
    assert "pyoco_runs_total" in client.get_metrics()
    assert {process["process"] for process in client.actors()} >= {"g1"}
    assert client.patch_worker_hidden("w1", hidden=False)["hidden"] is False
    assert [each["worker_id"] for each in client.get_workers(scope="all")] == ["w1"]
    failed = client.submit_run("nobody-has-this")["run_id"]
    client.wait(failed, 60)
    page = until(lambda: client.list_dlq(run_id=failed), lambda found: bool(found["items"]))
    seq = page["items"][0]["seq"]
    assert client.get_letter(seq)["run_id"] == failed
    assert client.replay_letter(seq)["replay_of"] == seq
    assert client.drop_letter(seq) == {"seq": seq, "deleted": True}
    with pytest.raises(GatewayRefused, match="not found"):
        client.get_letter(seq)


def test_wheels_go_there_and_back(client: PyocoHttpClient, tmp_path: Path) -> None:
    """From a file with its progress; listed, in the history, and deleted."""
    path, told = tmp_path / wheel_name("clientdemo", "1.0"), []
    path.write_bytes(wheel_of("clientdemo", "1.0"))
    found = client.upload_wheel_file(path, tags=["nobody"], on_progress=lambda *each: told.append(each))
    assert found["tags"] == ["nobody"]
    assert told[-1] == (path.stat().st_size,) * 2
    assert client.list_wheel_history(wheel_name=path.name)[0]["action"] == "upload"
    assert client.delete_wheel(path.name) == {"name": path.name, "deleted": True}


def test_a_watch_survives_a_restart_of_the_http_actor(house: House, client: PyocoHttpClient) -> None:
    """No state is told twice, and the end is told."""
    release = house.place / "release-http"
    run_id = client.submit_run("gate", {"release": str(release)})["run_id"]
    listener = Listener(client, run_id)
    house.gateway.restart("http")
    release.touch()
    assert listener.statuses()[-1] == "COMPLETED"


@pytest.mark.parametrize("whose", ["ours", "published"])
def test_a_watch_survives_the_death_of_the_gateway(house: House, whose: str) -> None:
    """Killed and started again on the same port: no state is told twice, and the end is told."""
    port, release = free_port(), house.place / f"release-{whose}"
    with PyocoHttpClient(f"http://127.0.0.1:{port}", retries=6) as client:
        with serving(house, whose, port) as process:
            run_id = client.submit_run("gate", {"release": str(release)})["run_id"]
            listener = Listener(client, run_id)
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_SEC)
        with serving(house, whose, port):
            release.touch()
            assert listener.statuses()[-1] == "COMPLETED"
            assert client.wait(client.submit_run("hello")["run_id"], 60)["status"] == "COMPLETED"


@contextmanager
def serving(house: House, whose: str, port: int) -> Iterator[subprocess.Popen[Any]]:
    if whose == "published":
        with published(house, port) as process:
            yield process
        return
    command = [str(BIN / "pyoco-runtime"), "--role", "gateway", "--nats-url", house.nats_url]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, "--port", str(port)], cwd=house.place, env=environment(), stdout=quiet, stderr=quiet
    )
    try:
        until(lambda: is_ready(port), bool)
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_SEC)


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_the_published_gateway_is_served_too(house: House) -> None:
    """Its routes with its dicts; what it has not is refused."""
    port = free_port()
    with published(house, port), PyocoHttpClient(f"http://127.0.0.1:{port}") as client:
        run_id = client.submit_run("hello")["run_id"]
        assert client.wait(run_id, 60)["status"] == "COMPLETED"
        assert client.get_run(run_id)["status"] == "COMPLETED"
        assert client.get_workers(scope="all")
        assert client.list_runs_vnext(updated_after=0, limit=1)["items"]
        assert [each["event"] for each in client.watch_run(run_id, timeout_sec=1)] == ["snapshot"]
        path = wheel_name("peerdemo", "1.0")
        assert client.upload_wheel(filename=path, data=wheel_of("peerdemo", "1.0"), tags=["nobody"])["name"] == path
        assert client.delete_wheel(path)["deleted"] is True
        with pytest.raises(GatewayRefused):
            client.submit_batch([{"flow_name": "hello"}])


def test_cancel_waits_and_wait_has_an_end(house: House, client: PyocoHttpClient) -> None:
    """A run that goes on is given up in time; a cancelled one is waited for."""
    run_id = client.submit_run("gate", {"release": str(house.place / "never")})["run_id"]
    began = time.monotonic()
    with pytest.raises(WaitTimeout, match=run_id):
        client.wait(run_id, 1.3)
    assert time.monotonic() - began < 5
    assert client.cancel_run(run_id, wait=True, timeout_sec=60, reason="enough")["status"] == "CANCELLED"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_async_client_on_both_backends(house: House, backend: str) -> None:
    """The list is watched while a run goes its way."""

    async def main() -> None:
        async with AsyncPyocoHttpClient(house.gateway.url) as client:
            events = client.watch_list(flow="hello")
            assert isinstance(await anext(events), ListReady)
            run_id = (await client.submit_run("hello"))["run_id"]
            async for event in events:
                if isinstance(event, RunListed) and event.run["run_id"] == run_id:
                    break
            await events.aclose()
            assert (await client.wait(run_id, 60))["status"] == "COMPLETED"

    anyio.run(main, backend=backend)


def test_the_examples_of_the_page_work(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of the how-to runs, one after the other, against a real gateway."""
    monkeypatch.chdir(tmp_path)
    wheel = Path("demo-1.0-py3-none-any.whl")
    wheel.write_bytes(wheel_of("demo", "1.0"))
    scope: dict[str, Any] = {}
    for text in re.findall(r"(?ms)^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        exec(text.replace("http://127.0.0.1:8000", house.gateway.url), scope)
    with scope["client"] as client:
        client.delete_wheel(wheel.name)
