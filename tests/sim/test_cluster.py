"""Hundreds of clusters in trouble; a failing seed is named and replays exactly."""

from __future__ import annotations

import os

import pytest

from tests.sim.cluster import simulate_cluster

SEEDS = int(os.environ.get("PYOCO_SIM_SEEDS", "500")) // 5  # a cluster takes about 50 ms, a tree of supervisors 5 ms
BATCH = 50


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_the_laws_about_runs_hold(first: int) -> None:
    """Whoever is killed, cut off, restarted or slow: every accepted run ends, once, and nothing is left behind."""
    for seed in range(first, min(first + BATCH, SEEDS)):
        simulate_cluster(seed)


def test_a_cluster_replays_exactly() -> None:
    """The same seed gives the same facts at the same times; other seeds give others."""
    traces = [simulate_cluster(seed) for seed in range(10)]
    assert [simulate_cluster(seed) for seed in range(10)] == traces
    assert len({tuple(trace) for trace in traces}) == 10


@pytest.mark.skipif("PYOCO_SIM_SEED" not in os.environ, reason="set PYOCO_SIM_SEED to replay one seed")
def test_one_cluster() -> None:
    """Replay one seed and print what was done and what the server saw."""
    print(*simulate_cluster(int(os.environ["PYOCO_SIM_SEED"])), sep="\n")
