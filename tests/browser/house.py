"""The house that the page looks at: NATS, a gateway and a worker, each in a process of its own."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.integration.gateway_client import TERMINAL, client_of, good, until
from tests.integration.programs import environment
from tests.integration.worker_client import PROGRAM, Worker

FLOWS = Path(__file__).with_name("flows.py")
QUICK = {"PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC": "1", "PYOCO_WORKER_PROBE_PORT": "0"}


class House:
    """A NATS, a gateway at an address that stays the same, and workers; any of them can be ended and started again."""

    def __init__(self, place: Path, nats: RunningServer, **env: str) -> None:
        self.place = place
        self.nats = nats
        self.url = "http://127.0.0.1:0"
        self._env = env
        self._workers: list[Worker] = []
        self.gateway = self._start_gateway()
        self.http = client_of(self.url)

    # -- what lives in it --------------------------------------------------------------------------------------------

    def start_worker(
        self, name: str = "w1", tags: str = "default", program: Sequence[str] = PROGRAM, **env: str
    ) -> Worker:
        """A worker with the flows of this folder, two at a time."""
        command = [*program, "--role", "worker", "--nats-url", self.nats.url, "--worker-id", name, "--tags", tags]
        command += ["--flow-resolver", f"{FLOWS}:resolve", "--concurrency", "2"]
        settings = environment(**{**QUICK, "PYOCO_PROCESS_NAME": name, **env})
        started = Worker(command, self.place, settings, name, self.nats.url)
        self._workers.append(started)
        return started

    def restart_gateway(self) -> None:
        """End the gateway and start it again at the same address."""
        self.end_gateway()
        self.begin_gateway()

    def end_gateway(self) -> None:
        """Stop it in order."""
        self.gateway.terminate()
        self.gateway.close()

    def begin_gateway(self) -> None:
        """Start it at the address that it had."""
        self.gateway = self._start_gateway()

    def until_ready(self) -> None:
        """Wait until /ready says yes."""
        until(lambda: httpx.get(f"{self.url}/ready", trust_env=False), lambda answer: answer.status_code == 200)

    def close(self) -> None:
        """Leave nothing behind."""
        self.http.close()
        for each in (*self._workers, self.gateway):
            each.close()

    def _start_gateway(self) -> Worker:
        port = str(httpx.URL(self.url).port)
        command = [*PROGRAM, "--role", "gateway", "--nats-url", self.nats.url, "--port", port]
        started = Worker(command, self.place, environment(PYOCO_PROCESS_NAME="g1", **self._env), "g1", self.nats.url)
        try:
            self.url = str(started.wait_said("is listening on")["message"].rpartition(" ")[2])
            self.until_ready()
        except BaseException:
            started.close()
            raise
        return started

    # -- what is done in it, over HTTP as programs do -----------------------------------------------------------------

    def submit(self, flow_name: str, tag: str = "default", **params: Any) -> str:
        """POST /runs; returns the run's id."""
        body = {"flow_name": flow_name, "params": params, "tag": tag}
        return str(good(self.http.post("/runs", json=body))["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        """GET /runs/{id}."""
        found: dict[str, Any] = good(self.http.get(f"/runs/{run_id}"))
        return found

    def until_running(self, run_id: str) -> None:
        """Wait until a task of it is executed."""
        until(lambda: self.run(run_id), lambda run: "RUNNING" in run["tasks"].values())

    def until_ended(self, run_id: str) -> str:
        """Wait for its end; returns its status."""
        return str(until(lambda: self.run(run_id)["status"], lambda status: status in TERMINAL))

    def ended(self, flow_name: str, **params: Any) -> str:
        """Submit a run and wait for its end; returns its id."""
        run_id = self.submit(flow_name, **params)
        self.until_ended(run_id)
        return run_id

    def until_letters(self, count: int) -> list[dict[str, Any]]:
        """Wait until there are so many dead letters."""

        def look() -> list[dict[str, Any]]:
            return list(good(self.http.get("/dlq"))["items"])

        return until(look, lambda found: len(found) >= count)

    def until_worker(self, name: str, state: str = "IDLE") -> None:
        """Wait until it is listed, in that state."""

        def look() -> dict[str, str]:
            listed = good(self.http.get("/workers", params={"scope": "all", "include_hidden": "true"}))
            return {each["worker_id"]: each["state"] for each in listed}

        until(look, lambda found: found.get(name) == state)


@contextmanager
def house_in(place: Path, **env: str) -> Iterator[House]:
    """A house for a block, with a gateway and nobody who works."""
    with nats_server(place / "store") as nats:
        made = House(place, nats, **env)
        try:
            yield made
        finally:
            made.close()


def wheel(name: str = "tools", version: str = "1.0") -> tuple[str, bytes]:
    """A wheel that pip would install: its file name and its bytes."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f'VERSION = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)
    return f"{name}-{version}-py3-none-any.whl", packed.getvalue()
