"""The workers in memory."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model.offer import Offered
from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.worker import WorkerRecord, WorkerState, effective_state
from pyoco_runtime.model.worker_index import WorkerIndex

NOW = 1_000_000.0
TIMEOUT = 20.0
IDLE, RUNNING, STOPPED = WorkerState.IDLE, WorkerState.RUNNING, WorkerState.STOPPED_GRACEFUL


def _record(worker_id: str, state: WorkerState = IDLE, silent_sec: float = 0.0, **fields: Any) -> WorkerRecord:
    return WorkerRecord(worker_id=worker_id, instance_id="i", state=state, last_seen_at=NOW - silent_sec, **fields)


def _index(*records: WorkerRecord, ttl_sec: float | None = None) -> WorkerIndex:
    index = WorkerIndex(ttl_sec)
    index.begin_load()
    for revision, record in enumerate(records, 1):
        index.put(record, revision)
    index.end_load()
    return index


def _ids(index: WorkerIndex, now: float = NOW, **asked: Any) -> list[str]:
    return [each.worker_id for each in index.query(now=now, disconnect_timeout_sec=TIMEOUT, **asked)]


HOUSE = (
    _record("old", RUNNING, 5.0),
    _record("new", IDLE, 1.0),
    _record("hidden", IDLE, 2.0, hidden=True),
    _record("left", STOPPED, 3.0),
    _record("left-long-ago", STOPPED, 300.0),
    _record("silent", RUNNING, 21.0),
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["new", "old"]),
        ({"include_hidden": True}, ["new", "hidden", "old"]),
        ({"limit": 1}, ["new"]),
        ({"scope": "all"}, ["new", "left", "old", "silent", "left-long-ago"]),
        ({"scope": "all", "include_hidden": True, "limit": 2}, ["new", "hidden"]),
        ({"state": RUNNING}, ["old"]),
        ({"state": WorkerState.DISCONNECTED}, []),
        ({"scope": "all", "state": WorkerState.DISCONNECTED}, ["silent"]),
        ({"scope": "all", "state": STOPPED}, ["left", "left-long-ago"]),
    ],
)
def test_a_list_shows_the_workers_of_a_scope_and_a_state(asked: dict[str, Any], found: list[str]) -> None:
    """The newest first; a worker that was silent for too long is disconnected, unless it said good-bye."""
    assert _ids(_index(*HOUSE), **asked) == found


def test_those_that_run_or_are_idle_are_alive() -> None:
    """Hidden or not; time alone makes them silent."""
    index = _index(*HOUSE)
    assert index.alive(NOW, TIMEOUT) == 3
    assert index.alive(NOW + 16, TIMEOUT) == 2
    assert index.alive(NOW + 100, TIMEOUT) == 0


def test_a_worker_at_the_very_edge_is_still_there() -> None:
    """As effective_state has it."""
    index = _index(_record("w", IDLE, TIMEOUT))
    assert _ids(index) == ["w"]
    assert index.alive(NOW, TIMEOUT) == 1


def test_older_revisions_change_nothing() -> None:
    """Whatever their order."""
    index = _index()
    assert index.put(_record("w", RUNNING), 5)
    assert not index.put(_record("w", IDLE), 4)
    assert not index.put(_record("w", IDLE), 5)
    assert not index.remove("w", 3)
    assert index.get("w") == _record("w", RUNNING)
    assert index.remove("w", 6)
    assert not index.remove("w", 6)
    assert index.get("w") is None
    assert len(index) == 0


def test_what_is_not_told_any_more_is_gone() -> None:
    """A record that grew too old vanishes without a word; a bucket that was made anew counts from the beginning."""
    index = _index(_record("a"), _record("b"), _record("c"))
    index.lose("the feed was lost", NOW)
    assert len(index) == 3
    index.begin_load()
    assert index.put(_record("b", RUNNING), 1)
    assert not index.put(_record("b", IDLE), 1)
    assert not index.put(_record("c"), 3)
    assert index.end_load()
    assert _ids(index, scope="all") == ["c", "b"]
    assert index.get("b") == _record("b", RUNNING)


def _why(index: WorkerIndex) -> str | None:
    """Why it is behind; a function, so that mypy does not take it for what it was a moment ago."""
    return None if index.behind is None else index.behind.why


def test_it_says_why_it_is_behind() -> None:
    """From the first moment on, and while all is told anew."""
    index = WorkerIndex()
    assert _why(index) is not None
    index.begin_load()
    index.end_load()
    assert _why(index) is None
    index.lose("the cable was cut", 5.0)
    assert index.behind == Behind("the cable was cut", 5.0)
    index.begin_load()
    assert _why(index) is not None
    index.end_load()
    assert _why(index) is None


def test_nothing_is_shown_that_the_bucket_does_not_keep() -> None:
    """A record lives for its time after the last write, be it of the worker or of whoever hid it."""
    index = _index(
        _record("a", STOPPED, 50.0), _record("b", STOPPED, 90.0, updated_at=NOW - 10.0), _record("c"), ttl_sec=100.0
    )
    assert _ids(index, scope="all") == ["c", "a", "b"]
    assert _ids(index, NOW + 60, scope="all") == ["c", "b"]
    assert len(index) == 2
    assert index.put(_record("a", IDLE, -60.0), 9)
    assert _ids(index, NOW + 95, scope="all") == ["a", "c"]
    index.expire(NOW + 1000)
    assert len(index) == 0


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 10**400])
def test_times_that_are_no_times_do_no_harm(strange: float) -> None:
    """Another writer may have stored them."""
    index = _index(_record("a"), WorkerRecord(worker_id="b", instance_id="i", state=STOPPED, last_seen_at=strange))
    assert _ids(index, scope="all") == ["a", "b"]
    assert index.remove("b", 9)


writes = st.tuples(
    st.sampled_from("abcdef"),
    st.sampled_from([IDLE, RUNNING, STOPPED]),
    st.floats(0, 60),
    st.booleans(),
    st.integers(1, 40),
)


@given(st.lists(writes, max_size=40), st.sampled_from(["active", "all"]), st.sampled_from([None, *WorkerState]))
def test_it_agrees_with_a_plain_list(told: list[Any], scope: str, state: WorkerState | None) -> None:
    """Whatever was told in which order."""
    index = _index()
    latest: dict[str, tuple[int, WorkerRecord]] = {}
    for worker_id, is_in, silent_sec, hidden, revision in told:
        record = _record(worker_id, is_in, silent_sec, hidden=hidden)
        index.put(record, revision)
        if revision > latest.get(worker_id, (0, record))[0]:
            latest[worker_id] = (revision, record)
    expected = []
    for _, record in latest.values():
        shown = effective_state(record, NOW, TIMEOUT)
        if not record.hidden and (scope == "all" or shown in (IDLE, RUNNING)) and state in (None, shown):
            expected.append(record)
    expected.sort(key=lambda record: (record.last_seen_at, record.worker_id), reverse=True)
    found = index.query(now=NOW, disconnect_timeout_sec=TIMEOUT, scope=scope, state=state)
    assert list(found) == expected


def test_what_live_workers_announce_by_tag() -> None:
    """Hidden ones work too; those that left or are silent do not count."""
    index = _index(
        _record("a", RUNNING, tags=("cpu", "gpu"), flows=("x",), tasks=()),
        _record("b", IDLE, tags=("gpu",), flows=("y",), tasks=("t",), hidden=True),
        _record("left", STOPPED, tags=("gpu",), flows=("z",), tasks=()),
        _record("silent", RUNNING, 21.0, tags=("old",), flows=("z",), tasks=()),
        _record("peer", IDLE, tags=("any",)),
    )
    found = index.offers(NOW, TIMEOUT)
    assert found["gpu"] == Offered(frozenset({"x", "y"}), frozenset({"t"}))
    assert found["cpu"] == Offered(frozenset({"x"}), frozenset())
    assert found["any"] == Offered(None, None)
    assert sorted(found) == ["any", "cpu", "gpu"]


def test_heartbeats_leave_the_version_alone_and_changes_do_not() -> None:
    """Whoever keeps what was announced looks again only when it may be something else."""
    index = _index(_record("a", tags=("cpu",), flows=("x",)))
    version = index.version
    index.put(_record("a", RUNNING, -5.0, tags=("cpu",), flows=("x",)), 10)
    assert index.version == version
    changes = (
        _record("a", RUNNING, -5.0, tags=("cpu",), flows=("x", "y")),
        _record("a", RUNNING, -5.0, tags=("gpu",), flows=("x", "y")),
        _record("a", STOPPED, -5.0, tags=("gpu",), flows=("x", "y")),
        _record("a", STOPPED, -25.0, tags=("gpu",), flows=("x", "y")),
        _record("b", tags=("gpu",)),
    )
    for revision, record in enumerate(changes, 11):
        index.put(record, revision)
        version += 1
        assert index.version == version
    index.remove("b", 99)
    assert index.version == version + 1
