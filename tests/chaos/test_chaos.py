"""Seeded chaos: workers, child processes, actors and the nats-server are killed at random while runs stream through.

A failure names its seed: PYOCO_CHAOS_SEED=<seed> repeats the choices, though not the machine's timing.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.chaos.laws import check_laws
from tests.integration.worker_client import Worker, WorkerClient, executions, is_alive, worker, worker_client

IS_LONG = bool(os.environ.get("PYOCO_LONG_TESTS"))  # `make soak` sets it
RUNS = 2000 if IS_LONG else 200
BLOWS = 150 if IS_LONG else 14
SEEDS = range(1, 4) if IS_LONG else range(1, 2)
PATIENCE_SEC = 300.0 if IS_LONG else 90.0
ACTORS = ("ticker", "heartbeat", "cancel-watcher", "dlq-publisher", "runners", "consumer:default", "link", "runs")


class Storm:
    """Two workers on one server, and what befalls them."""

    def __init__(self, seed: int, cwd: Path, server: RunningServer, stack: ExitStack) -> None:
        self._dice = random.Random(seed)
        self._cwd = cwd
        self._server = server
        self._stack = stack
        self._born = 0
        self.workers = [self._start() for _ in range(2)]
        self.story: list[str] = []
        self.orphans: list[int] = []
        """The child processes of workers that were killed."""

    def blow(self) -> None:
        """Do something terrible."""
        blows: list[Callable[[], str]] = [self._kill_worker, self._kill_child, self._kill_child, self._kill_server]
        blows += [self._restart_actor, self._restart_actor]
        self.story.append(self._dice.choice(blows)())
        time.sleep(self._dice.uniform(0.05, 0.6))  # chaos is made of moments; nothing waits for an event here

    def _start(self) -> Worker:
        self._born += 1
        return self._stack.enter_context(
            worker(self._cwd, self._server.url, name=f"w{self._born}", PYOCO_CONSUMER_ACK_WAIT_SEC="2")
        )

    def _pick(self) -> Worker:
        return self._dice.choice(self.workers)

    def _kill_worker(self) -> str:
        victim = self._pick()
        self.orphans += victim.children()
        victim.kill()
        self.workers.remove(victim)
        self.workers.append(self._start())
        return f"killed {victim.name}"

    def _kill_child(self) -> str:
        children = self._pick().children()
        if children:
            os.kill(self._dice.choice(children), 9)
        return "killed a child"

    def _kill_server(self) -> str:
        self._server.kill()
        time.sleep(self._dice.uniform(0.0, 0.3))
        self._server.start()
        return "killed the server"

    def _restart_actor(self) -> str:
        victim, actor = self._pick(), self._dice.choice(ACTORS)
        done = victim.restart(actor)
        return f"restarted {actor} of {victim.name}: {done.stderr or 'done'}"


@pytest.mark.parametrize("seed", [int(os.environ["PYOCO_CHAOS_SEED"])] if "PYOCO_CHAOS_SEED" in os.environ else SEEDS)
def test_every_run_ends_whatever_is_killed(tmp_path: Path, seed: int) -> None:
    """Once and for good, and nothing stays on the queue."""
    notes = tmp_path / "notes"
    with (
        nats_server(tmp_path / "store") as server,
        worker_client(server.url) as client,
        ExitStack() as stack,
        ThreadPoolExecutor(1) as gateway,
    ):
        storm = Storm(seed, tmp_path, server, stack)
        submitting = gateway.submit(_submit, client, notes, seed)
        try:
            for _ in range(BLOWS):
                storm.blow()
            run_ids = submitting.result()
            client.wait_all_terminal(run_ids, patience_sec=PATIENCE_SEC)
            client.wait_no_jobs()
            check_laws(client.revisions())
            assert [pid for pid in storm.orphans if is_alive(pid)] == []
            for each in storm.workers:
                assert each.terminate() == 0, each.account()
        except BaseException:
            print(f"seed {seed}: PYOCO_CHAOS_SEED={seed} repeats it; what happened: {storm.story}")
            print(client.queue())
            for each in storm.workers:
                print(each.name, each.account())
            raise
    assert set(executions(notes)) <= set(run_ids)


def _submit(client: WorkerClient, notes: Path, seed: int) -> list[str]:
    """Runs of several lengths, spread over the time of the storm; some are cancelled."""
    dice = random.Random(seed)
    run_ids = []
    for number in range(RUNS):
        run_ids.append(client.submit("short", notes=str(notes), seconds=dice.choice((0.0, 0.01, 0.1, 0.5))))
        if number % 20 == 19:
            client.cancel(run_ids[-1])
        time.sleep(dice.uniform(0.0, 0.08))
    return run_ids
