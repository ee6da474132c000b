"""The gateway: ours beside pyoco-server 0.5.1, one process each: python benchmarks/gateway.py [--quick].

Each gateway has a nats-server of its own with so many stored runs, and no worker. Requests come from this process over
keep-alive connections. The peer lives in .venv-peers (`make bench` makes it).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import nats
import psutil  # type: ignore[import-untyped]  # its stubs are not in the lock
from attrs import frozen
from http_load import connection, milliseconds, per_second

from pyoco_runtime.model.api_key import new_key
from pyoco_runtime.model.wire import key_to
from pyoco_runtime.testing.nats_server import nats_server

OURS = str(Path(sys.executable).with_name("pyoco-runtime"))
PEER = str(Path(__file__).parent.parent / ".venv-peers" / "bin" / "pyoco-server")
CONNECTIONS = 32
BATCH = 1000
SUBMIT = json.dumps({"flow_name": "noop", "params": {"n": 1}}).encode()


@frozen
class Server:
    """A running gateway."""

    name: str
    port: int
    nats_url: str
    pid: int


@frozen
class Load:
    """How much is measured."""

    seconds: float
    stored: tuple[int, int]
    watches: int
    idle: int


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(name: str, *, stored: int = 0, auth: bool = False) -> Iterator[Server]:
    """A gateway with a nats-server of its own that holds so many runs."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, nats_server(Path(folder) / "nats") as nats_process:
        url = nats_process.url
        mode = "api_key" if auth else "none"
        environ = {**os.environ, "PYOCO_NATS_URL": url, "PYOCO_LOG_LEVEL": "ERROR", "PYOCO_HTTP_AUTH_MODE": mode}
        where = ["--host", "127.0.0.1", "--port", str(port), "--nats-url", url]
        command = [OURS, "--role", "gateway", *where] if name == "ours" else [PEER, "up", *where]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=quiet, stderr=quiet)
        try:
            wait_for(port, "/ready" if name == "ours" else "/health")
            if stored:
                asyncio.run(fill(url, stored))
            yield Server(name, port, url, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def wait_for(port: int, path: str) -> None:
    """Until it answers well."""
    deadline = time.monotonic() + 30
    while True:
        try:
            asyncio.run(milliseconds(port, path, 1))
            return
        except (OSError, asyncio.IncompleteReadError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


async def fill(url: str, count: int) -> None:
    """Store runs that are over, as workers leave them."""
    client = await nats.connect(url)
    js = client.jetstream()
    while True:
        try:
            kv = await js.key_value("pyoco_runs")
            break
        except nats.js.errors.Error:
            await asyncio.sleep(0.1)
    for start in range(0, count, 500):
        await asyncio.gather(*(kv.put(*stored_run(start + n)) for n in range(min(500, count - start))))
    await client.close()


def stored_run(number: int) -> tuple[str, bytes]:
    """One of them."""
    run_id, now = str(uuid.uuid4()), time.time() - 1000 + number / 1000
    records = {"nothing": {"state": "SUCCEEDED", "started_at": now, "ended_at": now, "inputs": {}, "output": None}}
    snapshot = {"run_id": run_id, "flow_name": f"flow-{number % 20}", "status": "COMPLETED", "tag": "default"}
    times = {"start_time": now, "end_time": now, "heartbeat_at": now, "updated_at": now, "error": None}
    more = {"tags": ["default"], "params": {"n": number}, "tasks": {"nothing": "SUCCEEDED"}, "task_records": records}
    return run_id, json.dumps({**snapshot, **times, **more}).encode()


# -- the figures ------------------------------------------------------------------------------------------------------


def submits(server: Server, seconds: float, key: str | None = None) -> float:
    """POST /runs a second at 32 connections."""
    return float(asyncio.run(per_second(server.port, CONNECTIONS, seconds, lambda: ("POST", "/runs", SUBMIT), key)))


def batches(server: Server, seconds: float) -> float:
    """Runs a second through POST /runs/batch."""
    body = json.dumps({"runs": [{"flow_name": "noop", "params": {"n": n}} for n in range(BATCH)]}).encode()
    return BATCH * float(asyncio.run(per_second(server.port, 2, seconds, lambda: ("POST", "/runs/batch", body))))


def reads(server: Server, path: str, times: int) -> float:
    """The median of GET, in milliseconds."""
    return float(statistics.median(asyncio.run(milliseconds(server.port, path, times))))


async def told(server: Server, times: int) -> list[float]:
    """From the terminal write until a watcher has the event, in milliseconds."""
    client = await nats.connect(server.nats_url)
    kv = await client.jetstream().key_value("pyoco_runs")
    took = []
    for _ in range(times):
        async with connection(server.port) as watcher:
            answer = await watcher.ask("POST", "/runs", SUBMIT)
            run_id = json.loads(answer.body)["run_id"]
            snapshot = json.loads((await kv.get(run_id)).value or b"")
            async with connection(server.port) as stream:
                stream.send("GET", f"/runs/{run_id}/watch?timeout_sec=10")
                await stream.reader.readuntil(b'"PENDING"')
                await asyncio.sleep(0.02)
                began = time.perf_counter()
                await kv.put(run_id, json.dumps({**snapshot, "status": "COMPLETED"}).encode())
                await stream.reader.readuntil(b'"COMPLETED"')
                took.append((time.perf_counter() - began) * 1000)
    await client.close()
    return took


async def idle_watchers(server: Server, count: int) -> tuple[float, float]:
    """CPU share and MiB more, while so many watchers wait for runs that do nothing."""
    process = psutil.Process(server.pid)
    async with AsyncExitStack() as stack:
        async with connection(server.port) as client:
            body = json.dumps({"runs": [{"flow_name": "noop"}] * count}).encode()
            results = json.loads((await client.ask("POST", "/runs/batch", body)).body)["results"]
        before = process.memory_info().rss
        for each in results:
            stream = await stack.enter_async_context(connection(server.port))
            stream.send("GET", f"/runs/{each['run_id']}/watch?timeout_sec=600")
            await stream.reader.readuntil(b'"PENDING"')
        used = sum(process.cpu_times()[:2])
        await asyncio.sleep(10)
        share = (sum(process.cpu_times()[:2]) - used) / 10
        return share, (process.memory_info().rss - before) / 2**20


async def store_key(url: str) -> str:
    """An API key that the gateway accepts."""
    key, record = new_key("bench", now=time.time(), pepper=None, randomness=os.urandom)
    client = await nats.connect(url)
    kv = await client.jetstream().key_value("pyoco_auth")
    await kv.put(f"api_keys.{record.key_id}", key_to(record))
    await client.close()
    return key.plain()


def show(label: str, mine: float, theirs: float, unit: str, bar: str, less_is_better: bool = False) -> None:
    """One line: ours, the peer's, and how many times better."""
    ratio = theirs / mine if less_is_better else mine / theirs
    print(f"{label:<44} ours {mine:9.2f} {unit:<6} peer {theirs:9.2f} {unit:<6} {ratio:7.1f} times ({bar})", flush=True)


def compare(load: Load) -> None:
    """Ours beside the peer, in turns."""
    figures: dict[str, dict[str, Any]] = {}
    for name in ("ours", "peer"):
        with serving(name, stored=load.stored[0]) as server:
            if name == "ours":
                wait_for_index(server, load.stored[0])
            times = 200 if name == "ours" else 3
            found = figures[name] = {"list": reads(server, "/runs?limit=50", times)}
            found["metrics"] = reads(server, "/metrics", times)
            found["told"] = asyncio.run(told(server, load.watches))
            found["submit"] = submits(server, load.seconds)
            if name == "ours":
                found["batch"] = batches(server, load.seconds)
                found["idle"] = asyncio.run(idle_watchers(server, load.idle))
    ours, peer = figures["ours"], figures["peer"]
    show("POST /runs, 32 connections", ours["submit"], peer["submit"], "/s", "bar: 1")
    show(f"POST /runs/batch of {BATCH}, runs", ours["batch"], peer["submit"], "/s", "bar: 10")
    stored = f"at {load.stored[0]:,}"
    show(f"GET /runs?limit=50 {stored}", ours["list"], peer["list"], "ms", "bar: 100", less_is_better=True)
    show(f"GET /metrics {stored}", ours["metrics"], peer["metrics"], "ms", "bar: 100", less_is_better=True)
    p95 = [statistics.quantiles(each["told"], n=20)[18] for each in (ours, peer)]
    show("terminal write to watcher, p95", p95[0], p95[1], "ms", "bar: ours under 20 ms", less_is_better=True)
    share, memory = ours["idle"]
    print(f"{load.idle} idle watchers: {share:.1%} of a core, {memory:.0f} MiB")
    many(load, ours["list"], ours["metrics"])


def many(load: Load, list_ms: float, metrics_ms: float) -> None:
    """Ours with ten times as many stored runs, and with API keys."""
    with serving("ours", stored=load.stored[1]) as server:
        began = time.perf_counter()
        wait_for_index(server, load.stored[1])
        caught_up = time.perf_counter() - began
        found = reads(server, "/runs?limit=50", 200), reads(server, "/metrics", 200)
        memory = psutil.Process(server.pid).memory_info().rss / 2**20
    label = f"at {load.stored[1]:,}"
    print(f"GET /runs?limit=50 {label}: {found[0]:.2f} ms, {found[0] / list_ms:.2f} of the smaller (bar: 1.2)")
    print(f"GET /metrics {label}: {found[1]:.2f} ms, {found[1] / metrics_ms:.2f} of the smaller (bar: 1.2)")
    print(f"the index caught up {caught_up:.1f} s after the last write; the gateway takes {memory:.0f} MiB")
    with serving("ours", auth=True) as server, serving("ours") as plain:
        key = asyncio.run(store_key(server.nats_url))
        rates = [(submits(plain, load.seconds), submits(server, load.seconds, key)) for _ in range(3)]
    ratio = statistics.median(without / with_key for without, with_key in rates)
    print(f"API keys on: {ratio - 1:.1%} more time for each POST /runs (bar: under 10 %)", flush=True)


def wait_for_index(server: Server, count: int) -> None:
    """Until the metrics show all that is stored."""

    async def complete() -> None:
        async with connection(server.port) as client:
            wanted = f'pyoco_runs_total{{status="COMPLETED"}} {float(count)}'.encode()
            while wanted not in (await client.ask("GET", "/metrics")).body:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(complete(), 120))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it works")
    parser.add_argument("--only", choices=["submit"], help="only what is asked for, of ours")
    chosen = parser.parse_args()
    if chosen.only == "submit":
        with serving("ours") as server:
            print(f"POST /runs {submits(server, 3):.0f}/s, batch {batches(server, 3):.0f}/s")
        return
    small = Load(1.0, (1_000, 10_000), 5, 100)
    compare(small if chosen.quick else Load(5.0, (10_000, 100_000), 40, 1_000))


if __name__ == "__main__":
    main()
