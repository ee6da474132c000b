"""No-op runs: ours beside pyoco-server 0.5.1, Celery and the bare engine: python benchmarks/runs.py [--quick].

Runs per second: the queue is filled while no worker runs; then the worker is started, and the time from the first
start to the last end counts, as the snapshots tell it. Latency: one run at a time, from before its snapshot is written
until a KV watch shows its end. The peers live in .venv-peers (`make bench` makes it); Celery needs a redis-server on
the PATH.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import nats.js.errors
import psutil  # type: ignore[import-untyped]  # its stubs are not in the lock
from attrs import frozen
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.kv import KeyValue

from pyoco_runtime.testing.nats_server import RunningServer, nats_server

HERE = Path(__file__).parent
FLOW = f"{HERE / 'noop_flow.py'}:resolve"
OURS = Path(sys.executable).with_name("pyoco-runtime")
PEERS = HERE.parent / ".venv-peers" / "bin"
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
ENGINE_SEC = 3.0
BARE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from noop_flow import FLOW
from pyoco.core.engine import Engine
from pyoco.trace.backend import TraceBackend
class Quiet(TraceBackend):
    def on_flow_start(self, flow_name, run_id=None): pass
    def on_flow_end(self, flow_name): pass
    def on_node_start(self, node_name): pass
    def on_node_end(self, node_name, duration_ms): pass
    def on_node_error(self, node_name, error): pass
engine = Engine(trace_backend=Quiet())
end = time.perf_counter() + float(sys.argv[2])
count = 0
while time.perf_counter() < end:
    engine.run(FLOW, {})
    count += 1
print(count / float(sys.argv[2]))
"""


@frozen
class Load:
    """How much is measured."""

    runs: int
    peer_runs: int
    latencies: int
    flat_runs: int


@frozen
class Worker:
    """A program that executes runs, and how many of its processes."""

    name: str
    command: tuple[str, ...]
    processes: int = 1


def ours(concurrency: int) -> Worker:
    """One process of ours with so many places."""
    command = (str(OURS), "--role", "worker", "--flow-resolver", FLOW, "--concurrency", str(concurrency))
    return Worker(f"pyoco-runtime, concurrency {concurrency}", (*command, "--log-level", "ERROR"))


def peer(processes: int) -> Worker:
    """So many processes of the peer; each executes one run at a time."""
    command = (str(PEERS / "pyoco-worker"), "--flow-resolver", FLOW, "--tags", "default")
    return Worker(f"pyoco-server 0.5.1, {processes} worker(s)", command, processes)


# -- what drives them -------------------------------------------------------------------------------------------------


async def connected(url: str) -> tuple[Client, JetStreamContext, KeyValue]:
    """A client of its own, and the bucket of the runs."""
    client = await nats.connect(url)
    js = client.jetstream()
    return client, js, await js.key_value("pyoco_runs")


async def submit(js: JetStreamContext, kv: KeyValue, run_id: str = "") -> str:
    """One run, as our gateway submits it; what the peer does not know, it ignores."""
    run_id, now = run_id or str(uuid.uuid4()), time.time()
    same = {"run_id": run_id, "flow_name": "noop", "tag": "default", "tags": ["default"], "submitted_at": now}
    snapshot = {**same, "status": "PENDING", "params": {}, "updated_at": now, "heartbeat_at": now}
    revision = await kv.create(run_id, json.dumps(snapshot).encode())
    job = {**same, "params": {}, "snapshot_revision": revision}
    await js.publish("pyoco.work.default", json.dumps(job).encode())
    return run_id


async def fill(url: str, count: int) -> set[str]:
    """Put so many runs on the queue, 64 at a time."""
    client, js, kv = await connected(url)
    ids: set[str] = set()
    while len(ids) < count:
        ids |= set(await asyncio.gather(*(submit(js, kv) for _ in range(min(64, count - len(ids))))))
    await client.close()
    return ids


async def watch_all(url: str, ids: set[str]) -> list[dict[str, Any]]:
    """The terminal snapshots of these runs, as soon as all are there."""
    client, _, kv = await connected(url)
    found: dict[str, dict[str, Any]] = {}
    watcher = await kv.watchall()
    async for entry in watcher:
        if entry is None or entry.key not in ids or not entry.value:
            continue
        snapshot = json.loads(entry.value)
        if snapshot["status"] in TERMINAL:
            found[entry.key] = snapshot
            if len(found) == len(ids):
                break
    await client.close()
    return list(found.values())


async def latencies(url: str, count: int) -> list[float]:
    """Submit to terminal in milliseconds, one run at a time."""
    client, js, kv = await connected(url)
    took = []
    for _ in range(count + 5):
        run_id = str(uuid.uuid4())
        watcher = await kv.watch(run_id)
        begin = time.perf_counter()
        await submit(js, kv, run_id)
        async for entry in watcher:
            if entry is not None and entry.value and json.loads(entry.value)["status"] in TERMINAL:
                break
        took.append((time.perf_counter() - begin) * 1000)
        await watcher.stop()  # type: ignore[no-untyped-call]  # nats-py
    await client.close()
    return took[5:]  # the first ones warm up


@contextmanager
def started(worker: Worker, url: str, cwd: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The worker's processes for a block."""
    environ = {**os.environ, "PYOCO_NATS_URL": url, "PYOCO_WORKER_PROBE_PORT": "0", "PYOCO_LOG_LEVEL": "ERROR"}
    processes = []
    for number in range(worker.processes):
        command = [*worker.command, "--worker-id", f"bench-{number}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes.append(subprocess.Popen(command, cwd=cwd, env=environ, **quiet))  # type: ignore[call-overload]
    try:
        yield processes
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(30)


def make_resources(url: str, cwd: Path) -> None:
    """Start a worker of ours once: it makes what is missing."""

    async def there() -> None:
        while True:
            client = await nats.connect(url)
            try:
                await client.jetstream().key_value("pyoco_runs")
                await client.jetstream().stream_info("PYOCO_WORK")
                return
            except nats.js.errors.NotFoundError:
                await asyncio.sleep(0.05)
            finally:
                await client.close()

    with started(ours(1), url, cwd):
        asyncio.run(asyncio.wait_for(there(), 30))


# -- the figures ------------------------------------------------------------------------------------------------------


@contextmanager
def fresh_server() -> Iterator[tuple[RunningServer, Path]]:
    """A nats-server with nothing on it but our resources."""
    with tempfile.TemporaryDirectory() as folder, nats_server(Path(folder) / "nats") as server:
        make_resources(server.url, Path(folder))
        yield server, Path(folder)


def runs_per_second(worker: Worker, count: int) -> float:
    """From the first start to the last end."""
    with fresh_server() as (server, cwd):
        ids = asyncio.run(fill(server.url, count))
        with started(worker, server.url, cwd):
            ends = asyncio.run(asyncio.wait_for(watch_all(server.url, ids), 600))
    bad = [s for s in ends if s["status"] != "COMPLETED"]
    assert not bad, bad[0]
    return count / float(max(s["end_time"] for s in ends) - min(s["start_time"] for s in ends))


def latency(worker: Worker, count: int) -> list[float]:
    """With an idle worker."""
    with fresh_server() as (server, cwd), started(worker, server.url, cwd):
        return asyncio.run(asyncio.wait_for(latencies(server.url, count), 600))


def bare_engine() -> float:
    """`Engine.run` in a loop, in one process for each of two cores."""
    command = [sys.executable, "-c", BARE, str(HERE), str(ENGINE_SEC)]
    with tempfile.TemporaryDirectory() as folder:
        loops = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        return sum(float(loop.communicate()[0]) for loop in loops)


def memory(count: int) -> tuple[float, float]:
    """MiB of our worker and its children, after a tenth of the runs and after all of them."""

    def used(pid: int) -> float:
        process = psutil.Process(pid)
        everyone = [process, *process.children(recursive=True)]
        return float(sum(each.memory_full_info().uss for each in everyone)) / 2**20

    with fresh_server() as (server, cwd), started(ours(4), server.url, cwd) as processes:

        def run(some: int) -> float:
            ids = asyncio.run(fill(server.url, some))
            asyncio.run(asyncio.wait_for(watch_all(server.url, ids), 600))
            return used(processes[0].pid)

        return run(count // 10), run(count - count // 10)


def celery(load: Load) -> tuple[float, list[float]] | None:
    """Two worker processes on Redis; None without a redis-server."""
    redis = shutil.which("redis-server")
    if redis is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/redis.sock"
        command = [redis, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        environ = {**os.environ, "REDIS_URL": f"redis+socket://{socket}", "PYTHONPATH": str(HERE)}
        python = str(PEERS / "python")

        def drive(*what: str) -> list[float]:
            command = [python, str(HERE / "celery_load.py"), *what]
            done = subprocess.run(command, cwd=HERE, env=environ, stdout=subprocess.PIPE, text=True, check=True)
            return [float(line) for line in done.stdout.split()]

        try:
            while not Path(socket).exists():
                time.sleep(0.05)
            (rate,) = drive("fill", str(load.runs))
            args = [python, "-m", "celery", "-A", "celery_app", "worker", "-c", "2", "--loglevel", "ERROR"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            worker = subprocess.Popen(args, cwd=HERE, env=environ, **quiet)  # type: ignore[call-overload]
            try:
                return rate, drive("latency", str(load.latencies))
            finally:
                worker.terminate()
                worker.wait()
        finally:
            server.terminate()
            server.wait()


def p50(values: list[float]) -> float:
    return statistics.median(values)


def shown(took: list[float]) -> str:
    return f"p50 {p50(took):.2f} ms, p95 {statistics.quantiles(took, n=20)[18]:.2f} ms"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it works")
    parser.add_argument("--only", choices=["ours", "memory"], help="leave the peers out")
    chosen = parser.parse_args()
    share = 10 if chosen.quick else 1
    load = Load(runs=10_000 // share, peer_runs=600 // share, latencies=200 // share, flat_runs=20_000 // share)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {load.runs} runs of ours", flush=True)
    if chosen.only == "memory":
        show_memory(load)
        return
    engine = bare_engine()
    print(f"{'bare Engine.run, two processes':<44} {engine:8.0f} runs/s", flush=True)
    mine = {}
    for places in (2, 4, 8):
        mine[places] = runs_per_second(ours(places), load.runs)
        line = f"{ours(places).name:<44} {mine[places]:8.0f} runs/s"
        print(f"{line}   {mine[places] / engine:.0%} of the bare engine (bar: 60 %)", flush=True)
    my_latency = latency(ours(4), load.latencies)
    print(f"{'pyoco-runtime, submit to terminal':<44} {shown(my_latency)}", flush=True)
    if chosen.only == "ours":
        return
    show_peers(load, max(mine.values()), p50(my_latency))
    show_memory(load)


def show_peers(load: Load, mine: float, my_p50: float) -> None:
    """The peers, each as a ratio to ours."""
    for processes in (1, 2):
        worker = peer(processes)
        rate = runs_per_second(worker, load.peer_runs)
        print(f"{worker.name:<44} {rate:8.0f} runs/s   ours is {mine / rate:.1f} times as fast (bar: 8)", flush=True)
    theirs = latency(peer(1), load.latencies)
    line = f"{'pyoco-server 0.5.1, submit to terminal':<44} {shown(theirs)}"
    print(f"{line}   ours takes {my_p50 / p50(theirs):.0%} (bar: 50 %)", flush=True)
    found = celery(load)
    if found is None:
        print("Celery: left out, there is no redis-server on the PATH")
        return
    rate, took = found
    print(f"{'Celery 5.7 on Redis, two processes':<44} {rate:8.0f} tasks/s   ours: {mine / rate:.1f} times", flush=True)
    print(f"{'Celery, submit to result':<44} {shown(took)}", flush=True)


def show_memory(load: Load) -> None:
    """Whether it stays flat."""
    early, late = memory(load.flat_runs)
    line = f"{early:.0f} MiB after {load.flat_runs // 10} runs, {late:.0f} MiB after {load.flat_runs}"
    print(f"{'memory of worker and children':<44} {line}")


if __name__ == "__main__":
    main()
