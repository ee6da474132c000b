"""A nats-server that is there and does nothing: stopped by SIGSTOP, as one that swaps or whose disk hangs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from attrs import frozen

from pyoco_runtime.testing.nats_server import RunningServer, nats_server
from tests.integration.gateway_client import Gateway, gateway, good, until, watching
from tests.integration.test_gateway import NEEDS_NATS, check_unavailable, check_well
from tests.integration.worker_client import worker

IN_TIME_SEC = 1.0
NOTICED_SEC = 5.0  # by a house in which nobody asks NATS for anything; a PING each two seconds finds it


@contextmanager
def frozen_server(nats: RunningServer) -> Iterator[None]:
    """It does nothing while the block runs."""
    os.kill(nats.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(nats.pid, signal.SIGCONT)


@frozen
class House:
    """A server, a gateway and a worker."""

    nats: RunningServer
    gateway: Gateway


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests: each leaves it well."""
    place = tmp_path_factory.mktemp("frozen")
    with nats_server(place / "store") as nats, worker(place, nats.url), gateway(place, nats.url) as one:
        yield House(nats, one)


def test_whoever_asks_nats_is_answered_within_a_second_and_all_is_well_afterwards(house: House) -> None:
    """The first requests after it froze, all at once; then every route, at once; streams and indexes live on."""
    run_id = house.gateway.submit("hello")
    with watching(house.gateway.http, "/runs/watch?timeout_sec=600") as stream:
        with frozen_server(house.nats), ThreadPoolExecutor(len(NEEDS_NATS)) as pool:
            first = list(pool.map(lambda each: timed(house.gateway, run_id, *each[:2], **each[2]), ASKING))
            for told, status, took_sec in first:
                assert (status, took_sec < IN_TIME_SEC) == (503, True), f"{told}: {status} after {took_sec:.2f} s"
            check_unavailable(house.gateway, run_id)
            assert "does not answer" in house.gateway.http.get("/ready").text
        house.gateway.until_ready()
        check_well(house.gateway, run_id)
        again = house.gateway.submit("hello")
        stream.wait(lambda event: event.data.get("run_id") == again and event.data["status"] == "COMPLETED")
    assert all(house.gateway.lives(actor) == 0 for actor in ("http", "run-index", "link", "worker-index"))


INDEXED = frozenset({"/runs", "/runs?include=full", "/runs/watch", "/workers", "/dlq"})
ASKING = [each for each in NEEDS_NATS if (each[0] != "GET" or each[1] not in INDEXED) and "restart" not in each[1]]
"""The routes that ask NATS; the others read an index, and learn of it from a PING.

A request that is answered 503 may happen all the same when the server goes on: a restart would end the stream here.
"""


def timed(one: Gateway, run_id: str, method: str, path: str, **more: object) -> tuple[str, int, float]:
    """The request, its status, and how long it took."""
    began = time.monotonic()
    answer = one.http.request(method, path.format(run=run_id), **more)  # type: ignore[arg-type]  # what httpx takes
    return f"{method} {path} {answer.text}", answer.status_code, time.monotonic() - began


def test_a_quiet_house_notices_too(house: House) -> None:
    """Lists come from memory, without a word to NATS; they say no soon after the server fell silent."""
    with frozen_server(house.nats):
        began = time.monotonic()
        until(lambda: house.gateway.http.get("/runs").status_code, lambda status: status == 503)
        assert time.monotonic() - began < NOTICED_SEC
    house.gateway.until_ready()


def test_nothing_is_lost_and_nothing_is_double(house: House) -> None:
    """Submits while it freezes again and again: each key is one run, each accepted run completes."""
    accepted: dict[str, str] = {}

    def submit(number: int) -> None:
        key = f"frozen-{number}"
        body = {"flow_name": "hello", "tag": "default"}
        while True:
            answer = house.gateway.http.post("/runs", json=body, headers={"Idempotency-Key": key})
            if answer.status_code == 200:
                accepted[key] = answer.json()["run_id"]
                return
            assert answer.status_code == 503, answer.text
            time.sleep(0.05)

    before = set(house.gateway.listed())
    with ThreadPoolExecutor(16) as pool:
        submits = [pool.submit(submit, number) for number in range(400)]
        for _ in range(3):
            time.sleep(0.2)
            with frozen_server(house.nats):
                time.sleep(1.2)
        for each in submits:
            each.result()
    until(lambda: house.gateway.listed(), lambda runs: all(runs.get(id) == "COMPLETED" for id in accepted.values()))
    made = {id: status for id, status in house.gateway.listed().items() if id not in before}
    assert len(set(accepted.values())) == 400
    assert set(made) == set(accepted.values()), "no run beside those that were told to somebody"


def test_a_server_under_load_is_not_called_away(house: House) -> None:
    """Batches of a thousand from many clients at once: nobody hears a 503."""

    def batch(_: int) -> httpx.Response:
        runs = [{"flow_name": "hello", "tag": "nobody", "params": {"x": "y" * 2000}} for _ in range(1000)]
        return house.gateway.http.post("/runs/batch", json={"runs": runs})

    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(batch, range(16)):
            assert good(answer)["accepted"] == 1000
