"""The figures of the actor runtime, each beside its bar: python benchmarks/core.py [--quick].

The channel is measured beside a bare anyio memory object stream in the same process, in alternating rounds; the median
of the rounds' ratios counts, so that a busy moment of the machine falls on both.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import psutil  # type: ignore[import-untyped]  # its stubs are not in the lock
from attrs import frozen

from pyoco_runtime.core import (
    ActorSpec,
    Channel,
    Children,
    Context,
    Receiver,
    Restart,
    Sender,
    Supervisor,
    SupervisorSpec,
)

CAPACITY = 64  # a common size for both sides; the ratio hardly depends on it
CHILDREN = 1000
READY_SEC = 60.0  # the first start of the program on a cold disk takes some seconds
PROGRAM = Path(sys.executable).with_name("pyoco-runtime")


@frozen
class Load:
    """How much is measured."""

    rounds: int
    messages: int
    idle_sec: float


@frozen
class Figure:
    """One line of the table; `good` is None where there is no bar."""

    name: str
    value: str
    bar: str = ""
    good: bool | None = None


# -- messages through a channel --------------------------------------------------------------------------------------


class Writer:
    """Send so many messages."""

    def __init__(self, to: Sender[int], count: int) -> None:
        self._to = to
        self._count = count

    async def run(self, context: Context) -> None:
        context.ready()
        for number in range(self._count):
            await self._to.send(number)


class Reader:
    """Receive so many messages; `took_sec` gets the seconds from the first to the last."""

    def __init__(self, source: Receiver[int], count: int, took_sec: list[float], done: anyio.Event) -> None:
        self._source = source
        self._count = count
        self._took_sec = took_sec
        self._done = done

    async def run(self, context: Context) -> None:
        context.ready()
        await self._source.receive()
        began = time.perf_counter()
        for _ in range(self._count - 1):
            await self._source.receive()
        self._took_sec.append(time.perf_counter() - began)
        self._done.set()


async def channel_rate(count: int) -> float:
    """Messages a second between two actors under a supervisor."""
    channel = Channel[int]("bench", capacity=CAPACITY)
    took_sec: list[float] = []
    done = anyio.Event()
    spec = SupervisorSpec(
        "bench",
        (
            ActorSpec(
                "reader",
                lambda: Reader(channel, count, took_sec, done),
                restart=Restart.TEMPORARY,
                mailboxes=(channel,),
            ),
            ActorSpec("writer", lambda: Writer(channel, count), restart=Restart.TEMPORARY),
        ),
    )
    async with Supervisor(spec):
        await done.wait()
    return count / took_sec[0]


async def stream_rate(count: int) -> float:
    """Messages a second between two bare tasks."""
    sender, receiver = anyio.create_memory_object_stream[int](CAPACITY)
    took_sec = 0.0

    async def write() -> None:
        for number in range(count):
            await sender.send(number)

    async def read() -> None:
        nonlocal took_sec
        await receiver.receive()
        began = time.perf_counter()
        for _ in range(count - 1):
            await receiver.receive()
        took_sec = time.perf_counter() - began

    with sender, receiver:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
    return count / took_sec


def run_on(use_uvloop: bool, function: Callable[..., Any], *args: Any) -> Any:
    """Run on a fresh asyncio loop of that kind, without garbage collections in between."""
    gc.collect()
    gc.disable()
    try:
        return anyio.run(function, *args, backend_options={"use_uvloop": use_uvloop})
    finally:
        gc.enable()


def channel_figures(load: Load) -> Iterator[Figure]:
    """The channel beside the bare stream, on both loops."""
    for loop, use_uvloop in (("uvloop", True), ("asyncio", False)):
        ours: list[float] = []
        bare: list[float] = []
        for number in range(load.rounds):
            pair = [(ours, channel_rate), (bare, stream_rate)]
            for rates, measure in pair if number % 2 else reversed(pair):
                rates.append(run_on(use_uvloop, measure, load.messages))
        ratios = [mine / other for mine, other in zip(ours, bare, strict=True)]
        ratio = statistics.median(ratios)
        yield Figure(f"channel, {loop}", f"{statistics.median(ours):,.0f} messages/s")
        yield Figure(f"bare anyio stream, {loop}", f"{statistics.median(bare):,.0f} messages/s")
        spread = f"({min(ratios):.0%} to {max(ratios):.0%})"
        yield Figure(f"channel / bare stream, {loop}", f"{ratio:.0%} {spread}", ">= 80 %", ratio >= 0.80)


# -- children by the thousand ----------------------------------------------------------------------------------------


class Idle:
    """Be ready and wait to be stopped; `countdown` runs as soon as it is ready."""

    def __init__(self, countdown: Callable[[], None]) -> None:
        self._countdown = countdown

    async def run(self, context: Context) -> None:
        context.ready()
        self._countdown()
        await context.stopping.wait()


class Countdown:
    """Sets `zero` when it was called so many times."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.zero = anyio.Event()

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.zero.set()


async def dynamic_seconds(count: int) -> tuple[float, float]:
    """Seconds to start, and to stop, so many children through a handle."""
    handle = Children()
    countdown = Countdown(count)
    spec = SupervisorSpec("bench", dynamic=handle)
    async with Supervisor(spec):
        began = time.perf_counter()
        for number in range(count):
            handle.start(ActorSpec(f"c{number}", lambda: Idle(countdown), restart=Restart.TEMPORARY))
        await countdown.zero.wait()
        up = time.perf_counter()
    return up - began, time.perf_counter() - up


async def static_seconds(count: int) -> tuple[float, float]:
    """Seconds to start, and to stop, so many children that stand in the specification: one by one, in order."""
    countdown = Countdown(count)
    spec = SupervisorSpec("bench", tuple(ActorSpec(f"c{n}", lambda: Idle(countdown)) for n in range(count)))
    began = time.perf_counter()
    async with Supervisor(spec):
        up = time.perf_counter()
    return up - began, time.perf_counter() - up


def children_figures(load: Load) -> Iterator[Figure]:
    """Start and stop of many children under one supervisor."""
    for kind, measure in (("dynamic", dynamic_seconds), ("static", static_seconds)):
        runs: list[tuple[float, float]] = [run_on(True, measure, CHILDREN) for _ in range(max(3, load.rounds // 2))]
        start = statistics.median(up for up, _ in runs)
        stop = statistics.median(down for _, down in runs)
        total = statistics.median(up + down for up, down in runs)
        value = f"{total:.3f} s (start {start:.3f}, stop {stop:.3f})"
        yield Figure(f"{CHILDREN:,} {kind} children, start + stop", value, "< 1 s", total < 1.0)


# -- the program at rest ---------------------------------------------------------------------------------------------


class NotStarted(Exception):
    """The program could not be measured; says why."""


def program_figures(load: Load) -> Iterator[Figure]:
    """Idle CPU and memory of `pyoco-runtime --role all`, with its nats-server apart."""
    try:
        with tempfile.TemporaryDirectory() as place, program(Path(place)) as process:
            groups = processes(process)
            time.sleep(2.0 if load.idle_sec >= 10 else 0.5)  # what start-up left to do is no idle cost
            before = {name: cpu_seconds(group) for name, group in groups.items()}
            began = time.perf_counter()
            time.sleep(load.idle_sec)
            took = time.perf_counter() - began
            shares = {name: (cpu_seconds(group) - before[name]) / took for name, group in groups.items()}
            memory = {name: [each.memory_full_info() for each in group] for name, group in groups.items()}
    except (NotStarted, psutil.Error) as error:
        yield Figure("pyoco-runtime --role all at rest", f"not measured: {error}")
        return
    whole = sum(shares.values())
    for name, share in shares.items():
        yield Figure(f"idle CPU over {load.idle_sec:g} s, {name}", f"{share:.2%} of a core")
    yield Figure(f"idle CPU over {load.idle_sec:g} s, together", f"{whole:.2%} of a core", "< 1 %", whole < 0.01)
    for name, infos in memory.items():
        rss, uss = (sum(getattr(info, kind) for info in infos) / 2**20 for kind in ("rss", "uss"))
        yield Figure(f"memory at rest, {name}", f"RSS {rss:.0f} MiB, USS {uss:.0f} MiB")


@contextmanager
def program(place: Path) -> Iterator[psutil.Process]:
    """The program, ready, in a directory of its own; stopped by SIGTERM afterwards."""
    if not PROGRAM.exists():
        raise NotStarted(f"there is no {PROGRAM}")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYOCO_")}
    environ["PYOCO_NATS_CLIENT_PORT"] = "0"
    started = subprocess.Popen(
        [PROGRAM, "--role", "all", "--port", "0", "--log-format", "json"],
        cwd=place,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_for_listening(started)
        yield psutil.Process(started.pid)
    finally:
        stop(started)


def wait_for_listening(started: subprocess.Popen[bytes]) -> None:
    """Read its log until it says where HTTP listens. Raises NotStarted with the log's end."""
    assert started.stdout is not None
    deadline = time.monotonic() + READY_SEC
    log = b""
    while time.monotonic() < deadline:
        if select.select([started.stdout], [], [], 0.2)[0]:
            piece = os.read(started.stdout.fileno(), 65536)
            log += piece
            if re.search(rb"listening[^\n]*http://", log):
                return
            if not piece:
                break
    last = log.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    raise NotStarted(f"it was not listening within {READY_SEC:g} s; its last line: {last[0][:200]}")


def stop(started: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL to the whole group if that does not help."""
    if started.poll() is None:
        started.send_signal(signal.SIGTERM)
        try:
            started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()


def processes(main: psutil.Process) -> dict[str, list[psutil.Process]]:
    """The program's processes: ours, and nats-server's."""
    below = main.children(recursive=True)
    servers = [each for each in below if "nats-server" in each.name()]
    return {"pyoco-runtime": [main, *(each for each in below if each not in servers)], "nats-server": servers}


def cpu_seconds(group: list[psutil.Process]) -> float:
    """User and system time that these processes have used so far."""
    return float(sum(times.user + times.system for times in (each.cpu_times() for each in group)))


# -- the table -------------------------------------------------------------------------------------------------------


def main() -> int:
    """Measure everything and print it; exit 1 if a figure misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and 3 s of idling instead of 30")
    load = Load(4, 20_000, 3.0) if parser.parse_args().quick else Load(11, 100_000, 30.0)
    print(f"Python {sys.version.split()[0]}, anyio {version('anyio')}, {os.cpu_count()} cores")
    missed = 0
    for figures in (channel_figures, children_figures, program_figures):
        for figure in figures(load):
            verdict = {None: "", True: "ok", False: "MISSED"}[figure.good]
            print(f"{figure.name:<44} {figure.value:<44} {figure.bar:<8} {verdict}".rstrip(), flush=True)
            missed += figure.good is False
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
