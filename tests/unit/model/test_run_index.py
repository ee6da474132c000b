"""The run index against a naive list."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from pyoco_runtime.errors import InvalidQuery
from pyoco_runtime.model.roll_call import Behind
from pyoco_runtime.model.run import RunSnapshot, RunStatus
from pyoco_runtime.model.run_filter import RunFilter
from pyoco_runtime.model.run_index import RunIndex
from pyoco_runtime.model.run_summary import RunSummary

FLOWS, TAGS, SHAS, TENANTS = ("f", "g"), ("t", "u", None), ("s1", "s2", None), ("A", "B", None)
IDS = [f"r-{n:02}" for n in range(12)]


def run(run_id: str, at: float | None = 1.0, status: RunStatus = RunStatus.COMPLETED, **fields: Any) -> RunSnapshot:
    values = {"flow_name": "f", "tag": "t", **fields}
    return RunSnapshot(run_id=run_id, status=status, updated_at=at, **values)


SNAPSHOTS = st.builds(
    run,
    st.sampled_from(IDS),
    st.one_of(st.none(), st.integers(0, 6), st.just(float("nan"))),
    st.sampled_from(RunStatus),
    flow_name=st.sampled_from(FLOWS),
    tag=st.sampled_from(TAGS),
    workflow_yaml_sha256=st.sampled_from(SHAS),
    tenant_id=st.sampled_from(TENANTS),
)
FILTERS = st.builds(
    RunFilter,
    status=st.one_of(st.none(), st.sampled_from(RunStatus)),
    flow=st.sampled_from((*FLOWS, "h", None)),
    tag=st.sampled_from(TAGS),
    sha256=st.sampled_from(SHAS),
    tenant=st.sampled_from((*TENANTS, "C")),
    updated_after=st.one_of(st.none(), st.integers(-1, 6).map(float)),
)


@frozen
class Put:
    snapshot: RunSnapshot


@frozen
class Remove:
    run_id: str


@frozen
class Reload:
    """The feed is lost; so much happens unheard; all is told anew."""

    unheard: tuple[Put | Remove, ...]
    is_cut: bool
    """The first attempt to tell all ends in the middle."""
    is_anew: bool
    """The bucket was made anew, and counts from 1."""


EDITS = st.one_of(st.builds(Put, SNAPSHOTS), st.builds(Remove, st.sampled_from(IDS)))
STEPS = st.lists(
    st.one_of(
        EDITS, EDITS, EDITS, st.builds(Reload, st.lists(EDITS, max_size=4).map(tuple), st.booleans(), st.booleans())
    ),
    max_size=40,
)


class Bucket:
    """What is stored, told to an index as the feed would."""

    def __init__(self, index: RunIndex) -> None:
        self.index = index
        self.stored: dict[str, tuple[RunSnapshot | None, int]] = {}
        self._revision = 0
        index.begin_load()
        index.end_load()

    def play(self, step: Put | Remove | Reload) -> None:
        if isinstance(step, Reload):
            self._reload(step)
        else:
            self._tell(self._edit(step))

    def _edit(self, edit: Put | Remove) -> str:
        self._revision += 1
        run_id, found = (edit.snapshot.run_id, edit.snapshot) if isinstance(edit, Put) else (edit.run_id, None)
        self.stored[run_id] = (found, self._revision)
        return run_id

    def _tell(self, run_id: str) -> None:
        snapshot, revision = self.stored[run_id]
        if snapshot is None:
            self.index.remove(run_id, revision)
        else:
            self.index.put(snapshot, revision)

    def _reload(self, step: Reload) -> None:
        self.index.lose("test", 1.0)
        for edit in step.unheard:
            self._edit(edit)
        if step.is_anew:
            kept = [(run_id, found) for run_id, (found, _) in self.stored.items() if found is not None]
            self.stored = {run_id: (found, at + 1) for at, (run_id, found) in enumerate(kept)}
            self._revision = len(kept)
        in_order = sorted(self.stored, key=lambda run_id: self.stored[run_id][1])
        if step.is_cut:
            self.index.begin_load()
            for run_id in in_order[: len(in_order) // 2]:
                self._tell(run_id)
            self.index.lose("again", 2.0)
        self.index.begin_load()
        for run_id in in_order:
            self._tell(run_id)
        self.index.end_load()

    def naive(self, wanted: RunFilter) -> list[str]:
        """The whole list, by looking at everything."""
        known = RunIndex()
        summaries = [known._summarizer.summary_of(each, at) for each, at in self.stored.values() if each is not None]
        matching = [each for each in summaries if wanted.matches(each)]
        return [each.run_id for each in sorted(matching, key=lambda each: each.position, reverse=True)]


def pages(index: RunIndex, wanted: RunFilter, limit: int) -> list[str]:
    """All pages, one after the other."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = index.query(wanted, limit, cursor)
        assert len(page.runs) <= limit
        assert not page.is_partial
        found += [each.run_id for each in page.runs]
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(page.runs) == limit


@settings(max_examples=300)
@given(steps=STEPS, wanted=FILTERS, limit=st.integers(1, 5))
def test_every_list_is_that_of_a_naive_sorted_list(
    steps: list[Put | Remove | Reload], wanted: RunFilter, limit: int
) -> None:
    """After any puts, removals and reloads, page by page, with any filter; and so are the counts."""
    index = RunIndex()
    bucket = Bucket(index)
    for step in steps:
        bucket.play(step)
    assert index.behind is None
    assert pages(index, wanted, limit) == bucket.naive(wanted)
    everybody = [each for each, _ in bucket.stored.values() if each is not None]
    assert len(index) == len(everybody)
    for tenant in TENANTS:
        own = [each for each in everybody if tenant is None or each.tenant_id == tenant]
        assert sum(index.counts(tenant).values()) == len(own)
        assert {key: n for key, n in index.counts(tenant).items() if n} == {
            status: n for status in RunStatus if (n := sum(each.status is status for each in own))
        }
        assert index.counts_by_flow(10, tenant) == {
            (flow, status): n
            for flow in FLOWS
            for status in RunStatus
            if (n := sum((each.flow_name, each.status) == (flow, status) for each in own))
        }


@given(steps=STEPS, since=st.integers(0, 6))
def test_counts_since_a_moment_are_those_of_a_naive_list(steps: list[Put | Remove | Reload], since: int) -> None:
    """The moment itself counts."""
    index = RunIndex()
    bucket = Bucket(index)
    for step in steps:
        bucket.play(step)
    everything = [index.get(run_id) for run_id in bucket.naive(RunFilter())]
    for status, number in index.counts_since(float(since)).items():
        assert number == sum(each.status is status and each.position[0] >= since for each in everything if each)


@given(steps=STEPS)
def test_the_news_alone_keep_a_list_right(steps: list[Put | Remove | Reload]) -> None:
    """Whoever applies them to what it saw first has what is stored, reloads included."""
    seen: dict[str, RunSummary] = {}

    class Told(RunIndex):
        def put(self, *args: Any) -> Any:
            return self._told(super().put(*args))

        def remove(self, *args: Any) -> Any:
            return self._told(super().remove(*args))

        def end_load(self) -> Any:
            return [self._told(news) for news in super().end_load()]

        def _told(self, news: Any) -> Any:
            if news is not None:
                assert news.before == seen.get(news.run_id)
                seen.pop(news.run_id, None)
                if news.after is not None:
                    seen[news.run_id] = news.after
            return news

    bucket = Bucket(Told())
    for step in steps:
        bucket.play(step)
    assert {run_id: each.revision for run_id, each in seen.items()} == {
        run_id: revision for run_id, (found, revision) in bucket.stored.items() if found is not None
    }


@given(steps=STEPS, cap=st.integers(1, 8))
def test_the_cap_holds_and_a_page_that_may_lack_runs_says_so(steps: list[Put | Remove | Reload], cap: int) -> None:
    """A page that does not call itself partial is that of the naive list."""
    index = RunIndex(cap)
    bucket = Bucket(index)
    for step in steps:
        bucket.play(step)
        assert len(index) <= cap
    for wanted in (RunFilter(), *(RunFilter(status=status) for status in RunStatus), RunFilter(updated_after=3.0)):
        page = index.query(wanted, 3)
        if not page.is_partial:
            assert [each.run_id for each in page.runs] == bucket.naive(wanted)[:3]
    if not index.is_partial:
        assert len(index) == sum(found is not None for found, _ in bucket.stored.values())


def test_the_oldest_terminal_run_falls_out_first() -> None:
    """Open runs stay, however old; a newcomer that is older than all does not come in."""
    index = loaded(RunIndex(3), run("open", 1.0, RunStatus.RUNNING), run("old", 2.0), run("new", 3.0))
    index.put(run("newer", 4.0), 10)
    assert shown(index) == ["newer", "new", "open"]
    news = index.put(run("oldest", 0.5), 11)
    assert news is not None
    assert not news.is_listed
    assert shown(index) == ["newer", "new", "open"]
    assert index.is_partial
    page = index.query(RunFilter(status=RunStatus.RUNNING), 5)
    assert not page.is_partial, "no open run has fallen out"
    assert index.query(RunFilter(), 5).is_partial
    assert not index.query(RunFilter(), 1).is_partial, "what fell out is older than this page"


def test_where_nothing_is_over_the_oldest_open_run_falls_out() -> None:
    """The cap is a cap."""
    index = loaded(RunIndex(2), *(run(f"r-{n}", n, RunStatus.RUNNING) for n in range(4)))
    assert shown(index) == ["r-3", "r-2"]


def test_a_reload_in_which_nothing_falls_out_makes_the_list_whole_again() -> None:
    """Runs were removed meanwhile."""
    index = loaded(RunIndex(2), run("a", 1), run("b", 2), run("c", 3))
    assert index.is_partial
    assert loaded(index, run("b", 2), run("c", 3)).is_partial is False


def test_runs_that_fell_out_are_no_news_when_all_is_told_anew() -> None:
    """Nor are old removals: a reconnect costs its followers nothing."""
    index = loaded(RunIndex(2), run("a", 1), run("b", 2), run("c", 3))
    index.remove("gone", 4)
    index.begin_load()
    told = [index.put(run(run_id, at), at) for at, run_id in enumerate("abc", 1)]
    assert [*told, index.remove("gone", 4), *index.end_load()] == [None] * 4


def test_pages_show_every_unchanged_run_once_while_others_are_updated() -> None:
    """Those that are updated between two pages move to the top, and are shown at most once."""
    index = loaded(RunIndex(), *(run(f"r-{n:02}", n) for n in range(30)))
    found: list[str] = []
    cursor, at = None, 100
    while True:
        page = index.query(RunFilter(), 4, cursor)
        found += [each.run_id for each in page.runs]
        for run_id in ("r-28", "r-05", "r-10"):
            index.put(run(run_id, at), at)
            at += 1
        index.remove("r-15", at)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(found) == len(set(found))
    assert set(found) >= {f"r-{n:02}" for n in range(30)} - {"r-28", "r-05", "r-10", "r-15"}


def test_a_malformed_cursor_is_an_invalid_query() -> None:
    """Also on an empty index."""
    with pytest.raises(InvalidQuery):
        RunIndex().query(RunFilter(), 5, "no such thing")


def test_older_revisions_are_ignored() -> None:
    """Of puts and of removals."""
    index = loaded(RunIndex())
    index.put(run("a", 5), 5)
    assert index.put(run("a", 4), 4) is None
    assert index.put(run("a", 5), 5) is None
    assert index.remove("a", 3) is None
    assert shown(index) == ["a"]


def test_a_loss_says_since_when_until_all_is_told() -> None:
    """And how far it has come meanwhile."""
    index = RunIndex()
    assert said(index) == Behind("no runs have been read yet", None)
    loaded(index, run("a"))
    assert said(index) is None
    index.lose("gone", 7.0)
    index.lose("still gone", 8.0)
    assert said(index) == Behind("still gone", 7.0)
    index.begin_load()
    index.put(run("a"), 1)
    assert said(index) == Behind("reading the stored runs: 1 so far", 7.0)
    index.end_load()
    assert said(index) is None


def test_long_texts_are_cut_and_found_all_the_same() -> None:
    """The size of a summary has a bound; a tenant is never cut."""
    long = "x" * 10_000
    index = loaded(RunIndex(), run("a", flow_name=long, tag=long, error=long, tags=(long,) * 100, tenant_id=long))
    (found,) = index.query(RunFilter(flow=long, tag=long, tenant=long), 5).runs
    assert len(found.flow_name) == len(found.error or "") == 500
    assert len(found.tags) == 64
    assert found.tenant_id == long


def test_flows_beyond_the_limit_are_counted_together() -> None:
    """Metrics stay small."""
    index = loaded(RunIndex(), *(run(f"r-{n}", flow_name=f"f-{n}") for n in range(5)))
    counts = index.counts_by_flow(2)
    assert counts[("(other)", RunStatus.COMPLETED)] == 3
    assert len(counts) == 3


def test_sha256_with_a_flow_walks_over_the_smaller_set() -> None:
    """A thousand runs of one file, two of them of the flow that is asked for."""
    index = loaded(
        RunIndex(),
        *(run(f"r-{n:04}", n, flow_name="rare" if n < 2 else "f", workflow_yaml_sha256="s") for n in range(1000)),
    )
    wanted = RunFilter(flow="rare", sha256="s")
    assert [each.run_id for each in index.query(wanted, 5).runs] == ["r-0001", "r-0000"]
    assert len(list(index._candidates(wanted, None))) == 2


def test_nothing_is_left_of_runs_that_are_gone() -> None:
    """No empty set, no flow, no tenant."""
    index = loaded(RunIndex(), *(run(f"r-{n}", n, flow_name=f"f-{n}", tenant_id=f"t-{n}") for n in range(9)))
    for n in range(9):
        index.remove(f"r-{n}", 100 + n)
    assert not index._shelves
    assert len(index._ended) == len(index) == 0
    assert index.oldest() is None


def loaded(index: RunIndex, *runs: RunSnapshot) -> RunIndex:
    index.begin_load()
    for at, each in enumerate(runs, 1):
        index.put(evolve(each), at)
    index.end_load()
    return index


def said(index: RunIndex) -> Behind | None:
    return index.behind


def shown(index: RunIndex) -> list[str]:
    return [each.run_id for each in index.query(RunFilter(), 200).runs]
