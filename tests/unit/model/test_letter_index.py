"""The dead letters in memory."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyoco_runtime.model.dead_letter import DeadLetter, Reason
from pyoco_runtime.model.letter_index import LetterFilter, LetterIndex
from pyoco_runtime.model.roll_call import Behind

ALL = LetterFilter()
LOST, FAILED = Reason.LOST_JOB, Reason.EXECUTION_ERROR


def _letter(reason: Reason = FAILED, timestamp: float = 0.0, **fields: Any) -> DeadLetter:
    values = {"run_id": "r", "flow_name": "f", "tag": "t", "tenant_id": None, **fields}
    return DeadLetter(timestamp=timestamp, reason=reason, error="boom", **values)


def _index(*letters: DeadLetter, **limits: Any) -> LetterIndex:
    index = LetterIndex(**limits)
    _load(index, dict(enumerate(letters, 1)))
    return index


def _load(index: LetterIndex, letters: dict[int, DeadLetter]) -> None:
    index.begin_load()
    for seq, letter in letters.items():
        index.put(seq, letter)
    index.end_load()


def _seqs(index: LetterIndex, wanted: LetterFilter = ALL, limit: int = 100, before_seq: int | None = None) -> list[int]:
    return [entry.seq for entry in index.query(wanted, limit, before_seq)]


def test_the_newest_come_first_page_by_page() -> None:
    """The next page begins before the last of this one, whatever has come or gone meanwhile."""
    index = _index(*[_letter() for _ in range(7)])
    assert _seqs(index, limit=3) == [7, 6, 5]
    index.put(8, _letter())
    index.drop(5)
    index.drop(4)
    assert _seqs(index, limit=3, before_seq=5) == [3, 2, 1]
    assert _seqs(index, before_seq=1) == []
    assert _seqs(index, limit=0) == []


def test_an_entry_says_what_a_list_needs() -> None:
    """The rest is read from the stream."""
    index = _index(_letter(LOST, 4.5, run_id="r-1", flow_name="flow", tag="gpu", tenant_id="acme"))
    entry = index.get(1)
    assert entry is not None
    assert (entry.seq, entry.timestamp, entry.reason) == (1, 4.5, LOST)
    assert (entry.run_id, entry.flow_name, entry.tag, entry.tenant_id) == ("r-1", "flow", "gpu", "acme")
    assert index.get(2) is None


def test_what_is_gone_is_dropped() -> None:
    """Nobody tells; whoever finds it gone says so, once."""
    index = _index(_letter(), _letter())
    assert index.drop(1)
    assert not index.drop(1)
    assert _seqs(index) == [2]
    assert _seqs(index, LetterFilter(run_id="r")) == [2]
    assert index.drop(2)
    assert _seqs(index, LetterFilter(run_id="r")) == []
    assert (len(index), index.count(), index.counts_by_tenant()) == (0, 0, {})


def test_what_is_not_told_any_more_is_gone() -> None:
    """A stream that was made anew counts from the beginning: what stands there now is shown."""
    index = _index(_letter(), _letter(), _letter())
    index.lose("the feed was lost", 1.0)
    assert _seqs(index) == [3, 2, 1]
    _load(index, {1: _letter(LOST, flow_name="other"), 3: _letter()})
    assert _seqs(index) == [3, 1]
    assert _seqs(index, LetterFilter(reason=LOST)) == [1]
    assert _seqs(index, LetterFilter(flow="f")) == [3]


def _why(index: LetterIndex) -> str | None:
    """Why it is behind; a function, so that mypy does not take it for what it was a moment ago."""
    return None if index.behind is None else index.behind.why


def test_it_says_why_it_is_behind() -> None:
    """From the first moment on, and while all is told anew."""
    index = LetterIndex()
    assert _why(index) is not None
    _load(index, {})
    assert _why(index) is None
    index.lose("the cable was cut", 5.0)
    assert index.behind == Behind("the cable was cut", 5.0)


def _is_partial(index: LetterIndex) -> bool:
    return index.is_partial


def test_the_oldest_fall_out_and_the_list_says_so() -> None:
    """Until they are found to be gone from the stream too."""
    index = _index(*[_letter() for _ in range(3)], max_letters=3)
    assert not _is_partial(index)
    index.put(4, _letter())
    assert _seqs(index) == [4, 3, 2]
    assert _is_partial(index)
    _load(index, {seq: _letter() for seq in (1, 2, 3, 4)})
    assert _seqs(index) == [4, 3, 2]
    assert _is_partial(index)
    _load(index, {seq: _letter() for seq in (2, 3, 4)})
    assert not _is_partial(index)


def test_what_is_too_old_for_the_stream_is_forgotten() -> None:
    """Nobody tells that either."""
    index = _index(_letter(timestamp=10.0), _letter(timestamp=20.0), max_age_sec=100.0)
    index.expire(110.0)
    assert _seqs(index) == [2, 1]
    index.expire(110.5)
    assert _seqs(index) == [2]
    index.expire(1000.0)
    assert len(index) == 0


def test_letters_are_counted_by_tenant_and_reason() -> None:
    """None stands for all tenants in a question, and for no tenant in an answer."""
    index = _index(_letter(tenant_id="a"), _letter(LOST, tenant_id="a"), _letter(tenant_id="b"), _letter())
    assert (index.count(), index.count("a"), index.count("b"), index.count("c")) == (4, 2, 1, 0)
    assert (index.counts()[FAILED], index.counts()[LOST], index.counts()[Reason.INVALID_JOB]) == (3, 1, 0)
    assert (index.counts("a")[FAILED], index.counts("a")[LOST]) == (1, 1)
    assert index.counts_by_tenant() == {"a": 2, "b": 1, None: 1}


def test_texts_have_a_bound_and_are_found_all_the_same() -> None:
    """Invalid jobs may carry anything; only tenants are compared whole."""
    long = "x" * 10_000
    index = _index(_letter(run_id=long, flow_name=long, tag=long, tenant_id=long))
    entry = index.get(1)
    assert entry is not None
    assert entry.flow_name == "x" * 500
    assert _seqs(index, LetterFilter(run_id=long, flow=long, tag=long, tenant=long)) == [1]
    assert _seqs(index, LetterFilter(tenant="x" * 500)) == []


@pytest.mark.parametrize("strange", [math.nan, math.inf, 10**400])
def test_times_that_are_no_times_do_no_harm(strange: float) -> None:
    """Another writer may have stored them."""
    index = _index(_letter(timestamp=strange), _letter(timestamp=5.0), max_age_sec=10.0)
    index.expire(12.0)
    assert _seqs(index) == [2]


def test_a_filter_reads_reasons_as_text() -> None:
    """As they come in a query."""
    assert LetterFilter(reason="lost_job").reason is LOST
    with pytest.raises(ValueError, match="nonsense"):
        LetterFilter(reason="nonsense")


few = st.sampled_from([None, "a", "b"])
letters = st.builds(
    _letter, st.sampled_from([LOST, FAILED]), st.just(0.0), run_id=few, flow_name=few, tag=few, tenant_id=few
)
filters = st.builds(
    LetterFilter, reason=st.sampled_from([None, LOST, FAILED]), run_id=few, flow=few, tag=few, tenant=few
)


@given(st.lists(letters, max_size=30), st.sets(st.integers(1, 30)), filters, st.integers(1, 8), st.integers(1, 40))
def test_it_agrees_with_a_plain_list(
    told: list[DeadLetter], gone: set[int], wanted: LetterFilter, limit: int, before_seq: int
) -> None:
    """Whatever is asked for, and whatever is gone."""
    index = _index(*told, max_letters=25)
    for seq in gone:
        index.drop(seq)
    kept = [(seq, letter) for seq, letter in enumerate(told, 1) if seq > len(told) - 25 and seq not in gone]
    assert len(index) == len(kept)
    expected = [
        seq
        for seq, letter in reversed(kept)
        if wanted.reason in (None, letter.reason)
        and wanted.run_id in (None, letter.run_id)
        and wanted.flow in (None, letter.flow_name)
        and wanted.tag in (None, letter.tag)
        and wanted.tenant in (None, letter.tenant_id)
    ]
    assert _seqs(index, wanted, 100) == expected
    assert _seqs(index, wanted, limit, before_seq) == [seq for seq in expected if seq < before_seq][:limit]
    for seq, _ in kept:
        assert index.drop(seq)
    assert index.count() == 0
    assert index.counts_by_tenant() == {}
