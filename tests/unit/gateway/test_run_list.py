"""GET /runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from attrs import asdict, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from pyoco_runtime.gateway.run_list import CATCH_UP_SEC
from pyoco_runtime.model.run import RunStatus, TaskRecord, TaskStatus
from pyoco_runtime.model.run_cursor import cursor_to
from pyoco_runtime.testing.faults import Lost, Slow
from pyoco_runtime.testing.virtual_time import run_virtual
from tests.unit.gateway.support import Office, on_asyncio

SUMMARY = [
    "run_id",
    "flow_name",
    "tag",
    "tags",
    "tenant_id",
    "api_key_id",
    "status",
    "updated_at",
    "heartbeat_at",
    "worker_id",
    "error",
]  # the contract's


async def ids(office: Office, query: str = "") -> list[str]:
    found = (await office.client.get(f"/runs?{query}")).json
    return [each["run_id"] for each in (found if isinstance(found, list) else found["items"])]


@on_asyncio
async def test_the_newest_come_first_and_ties_by_id() -> None:
    """A plain list of summaries with the contract's fields; no params, no tasks."""
    async with Office().open() as office:
        office.write("a", updated_at=5.0, tags=("x", "y"), error="bad", worker_id="w", heartbeat_at=4.0)
        office.write("c", updated_at=5.0)
        office.write("b", updated_at=7.0, params={"secret": 1}, tasks={"t": TaskStatus.RUNNING})
        office.write("d", updated_at=None)
        await office.caught_up()
        found = (await office.client.get("/runs")).json
        assert [each["run_id"] for each in found] == ["b", "c", "a", "d"]
        assert set(found[0]) >= set(SUMMARY)
        assert not {"params", "tasks", "task_records"} & set(found[0])
        wanted = {"tags": ["x", "y"], "error": "bad", "worker_id": "w", "heartbeat_at": 4.0, "updated_at": 5.0}
        assert wanted.items() <= found[2].items()


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 50), ("limit=1", 1), ("limit=200", 60), ("limit=", 50), ("limit=1&limit=2", 2), ("unknown=1", 50)],
)
@on_asyncio
async def test_the_limit(query: str, count: int) -> None:
    """50 unless asked otherwise; unknown fields are ignored, and of a repeated one the last counts."""
    async with Office().open() as office:
        for n in range(60):
            office.write(f"r-{n}")
        await office.caught_up()
        assert len(await ids(office, query)) == count


@pytest.mark.parametrize(
    ("query", "named"),
    [
        *(
            (f"limit={each}", "limit: ")
            for each in ("0", "201", "-1", "x", "1.5", "1e1", "%EF%BC%99", "1" * 5000, "%00")
        ),
        ("status=STALE", "status: must be one of PENDING"),
        ("status=x", "status: must be one of"),
        ("updated_after=x", "updated_after: must be a number"),
        ("updated_after=nan", "updated_after: must be a number"),
        ("updated_after=inf", "updated_after: must be a number"),
        ("updated_after=1e999", "updated_after: must be a number"),
        ("cursor=x", "cursor: not a token"),
        ("cursor=" + "A" * 5000, "cursor: not a token"),
        ("cursor=%F0%9F%98%80", "cursor: not a token"),
        ("cursor=bnVsbA", "cursor: not a token"),
        ("cursor=" + cursor_to((5.0, "a"))[:-2], "cursor: not a token"),
    ],
)
@on_asyncio
async def test_what_is_wrong_is_named(query: str, named: str) -> None:
    """422 ERR-0017. STALE is a reading, not a status."""
    async with Office().open() as office:
        answer = await office.client.get(f"/runs?{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0017")
        assert answer.json["detail"].startswith(f"invalid list query: {named}")


@pytest.mark.parametrize("query", ["flow=%ff", "&".join(f"a{n}=1" for n in range(200))])
@on_asyncio
async def test_a_query_string_that_cannot_be_read_is_422(query: str) -> None:
    """Bytes that are no text, or fields without end."""
    async with Office().open() as office:
        answer = await office.client.get(f"/runs?{query}")
        assert (answer.status, answer.err_id) == (422, "ERR-PYOCO-0017")


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("status=RUNNING", ["d", "a"]),
        ("status=running", ["d", "a"]),
        ("status=COMPLETED", ["b"]),
        ("status=CANCELLING", []),
        ("status=", ["d", "c", "b", "a"]),
        ("flow=f", ["c", "a"]),
        ("flow=g", ["d", "b"]),
        ("flow=%E6%B5%81", []),
        ("tag=gpu", ["d", "c"]),
        ("tag=gpu&flow=f", ["c"]),
        ("tag=gpu&flow=f&status=RUNNING", []),
        ("updated_after=2", ["d", "c"]),
        ("updated_after=2.0&tag=gpu&limit=1", ["d"]),
        ("updated_after=-1e300", ["d", "c", "b", "a"]),
        ("workflow_yaml_sha256=abc", ["c"]),
        ("workflow_yaml_sha256=abd", []),
    ],
)
@on_asyncio
async def test_filters(query: str, right: list[str]) -> None:
    """All that are given must hold."""
    async with Office().open() as office:
        office.write("a", updated_at=1.0)
        office.write("b", RunStatus.COMPLETED, updated_at=2.0, flow_name="g")
        office.write("c", RunStatus.PENDING, updated_at=3.0, tag="gpu", workflow_yaml_sha256="abc")
        office.write("d", updated_at=4.0, flow_name="g", tag="gpu")
        await office.caught_up()
        assert await ids(office, query) == right


@pytest.mark.parametrize(
    ("query", "is_paged"),
    [
        ("", False),
        ("status=RUNNING&flow=f&tag=x&limit=3&include=full", False),
        ("updated_after=0", True),
        ("workflow_yaml_sha256=x", True),
        ("cursor=" + cursor_to((5.0, "a")), True),
    ],
)
@on_asyncio
async def test_when_the_answer_is_a_page(query: str, is_paged: bool) -> None:
    """With any of the last three fields of the contract, and else a plain list as ever."""
    async with Office().open() as office:
        found = (await office.client.get(f"/runs?{query}")).json
        assert isinstance(found, dict) is is_paged
        if is_paged:
            assert (found["items"], found["next_cursor"]) == ([], None)


@pytest.mark.parametrize("include", ["full", "all", "records&include=full"])
@on_asyncio
async def test_whole_snapshots_on_request(include: str) -> None:
    """With params, tasks and records; a run that was removed meanwhile is left out."""
    async with Office().open() as office:
        record = TaskRecord(state=TaskStatus.SUCCEEDED, output=7)
        office.write(
            "a", params={"x": 1}, tasks={"t": TaskStatus.SUCCEEDED}, task_records={"t": record}, updated_at=1.0
        )
        office.write("b", updated_at=2.0)
        await office.caught_up()
        found = (await office.client.get(f"/runs?include={include}")).json
        assert [each["run_id"] for each in found] == ["b", "a"]
        assert found[1]["params"] == {"x": 1}
        assert found[1]["task_records"]["t"]["output"] == 7
        office.faults.next("run_store.watch_next", Slow(1.0))
        office.remove("b")
        assert [each["run_id"] for each in (await office.client.get(f"/runs?include={include}")).json] == ["a"]


@pytest.mark.parametrize("include", ["records", "nonsense", "", "FULL"])
@on_asyncio
async def test_other_includes_give_summaries(include: str) -> None:
    """Only full and all ask for more."""
    async with Office().open() as office:
        office.write("a", params={"x": 1})
        await office.caught_up()
        assert "params" not in (await office.client.get(f"/runs?include={include}")).json[0]


# -- what is said along with the list ---------------------------------------------------------------------------------


@on_asyncio
async def test_while_the_index_catches_up_the_answer_says_so() -> None:
    """A header, and the list as far as it is known; it does not wait for ever."""
    async with Office().open() as office:
        office.write("a")
        await office.caught_up()
        assert "x-pyoco-behind" not in (await office.client.get("/runs")).headers
        office.faults.rate("run_store.watch", Lost.BEFORE, 1.0)
        office.faults.next("run_store.watch_next", Lost.BEFORE)
        office.write("b")
        await anyio.sleep(2)
        began = anyio.current_time()
        await office.client.post("/runs", {"flow_name": "f"})
        answer = await office.client.get("/runs")
        assert anyio.current_time() - began <= CATCH_UP_SEC
        assert "feed of runs was lost" in answer.headers["x-pyoco-behind"]
        assert [each["run_id"] for each in answer.json] == ["a"]
        office.faults.calm()
        await office.caught_up()
        answer = await office.client.get("/runs")
        assert "x-pyoco-behind" not in answer.headers
        assert len(answer.json) == 3


@pytest.mark.parametrize("path", ["/runs", "/runs?updated_after=1", "/workers", "/dlq"])
@on_asyncio
async def test_a_reason_that_no_header_can_hold_is_no_defect(path: str) -> None:
    """An error of NATS may have any text; other characters than ASCII's are not told."""
    async with Office().open() as office:
        for board in (office.parts.runs, office.parts.workers, office.parts.letters):
            board.lose("a\r\nb: 流 \x7f", 5.0)
        answer = await office.client.get(path)
        assert (answer.status, answer.headers["x-pyoco-behind"]) == (200, "a??b: ? ?")


@on_asyncio
async def test_whoever_cancels_sees_it_in_the_list_unless_that_takes_too_long() -> None:
    """The list waits a moment for the feed, and no longer."""
    async with Office().open() as office:
        office.write("a")
        await office.caught_up()
        office.faults.next("run_store.watch_next", Slow(CATCH_UP_SEC / 2))
        await office.client.post("/runs/a/cancel")
        assert (await office.client.get("/runs")).json[0]["status"] == "CANCELLING"
        office.write("b")
        await office.caught_up()
        office.faults.next("run_store.watch_next", *[Slow(4.0)] * 10)
        await office.client.post("/runs/b/cancel")
        began = anyio.current_time()
        found = (await office.client.get("/runs")).json
        assert anyio.current_time() - began == pytest.approx(CATCH_UP_SEC)
        assert {each["run_id"]: each["status"] for each in found} == {"a": "CANCELLING", "b": "RUNNING"}


@on_asyncio
async def test_a_list_that_may_lack_old_runs_says_so() -> None:
    """More are stored than the index holds: the oldest that are over have fallen out."""
    async with Office(max_runs=3).open() as office:
        for n in range(3):
            office.write(f"r-{n}", RunStatus.COMPLETED, updated_at=float(n))
        await office.caught_up()
        assert "x-pyoco-partial" not in (await office.client.get("/runs")).headers
        office.write("r-3", RunStatus.COMPLETED, updated_at=3.0)
        await office.caught_up()
        answer = await office.client.get("/runs")
        assert answer.headers["x-pyoco-partial"] == "true"
        assert len(answer.json) == 3
        page = (await office.client.get("/runs?updated_after=-1")).json
        assert (page["partial"], len(page["items"])) == (True, 3)
        recent = await office.client.get("/runs?updated_after=2")
        assert (recent.json["partial"], "x-pyoco-partial" in recent.headers) == (False, False)
        assert (await office.client.get("/runs/r-0")).status == 200, "single runs are read where they are stored"


@on_asyncio
async def test_odd_values_of_other_writers_do_not_break_the_list() -> None:
    """Not JSON, not a run, NaN, numbers that no float holds, texts without end."""
    async with Office().open() as office:
        head = b'{"run_id": "r", "flow_name": "f", "status": "RUNNING", '
        office.server.write_run("bad", b"nonsense")
        office.server.write_run("half", b'{"run_id": "half"}')
        office.server.write_run("nan", head.replace(b'"r"', b'"nan"') + b'"updated_at": NaN}')
        office.server.write_run("big", head.replace(b'"r"', b'"big"') + b'"updated_at": ' + b"9" * 400 + b"}")
        office.write("long", error="x" * 100_000, flow_name="\ud800")
        await office.caught_up()
        found = (await office.client.get("/runs")).json
        assert {each["run_id"] for each in found} == {"nan", "big", "long"}
        assert (await office.client.get("/metrics")).status == 200


# -- against a naive list ---------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Case:
    """A run as Hypothesis makes it."""

    run_id: str
    updated_at: float | None
    status: RunStatus
    flow_name: str
    tag: str | None
    workflow_yaml_sha256: str | None
    tenant_id: str | None

    @property
    def position(self) -> tuple[float, str]:
        return self.updated_at or 0.0, self.run_id


TIMES = st.sampled_from([None, 0.0, 1.0, 1.5, 2.0, 1e9 + 0.1, 1e9 + 0.2]) | st.floats(0, 3, width=32)
CASES = st.lists(
    st.builds(
        Case,
        run_id=st.uuids(version=4).map(str) | st.sampled_from(["a", "b", "A", "a-b"]),
        updated_at=TIMES,
        status=st.sampled_from(RunStatus),
        flow_name=st.sampled_from(["f", "g", "流れ", "a&b=c #+%"]),
        tag=st.sampled_from([None, "x", "y"]),
        workflow_yaml_sha256=st.sampled_from([None, "1", "2"]),
        tenant_id=st.sampled_from([None, "t", "u"]),
    ),
    max_size=30,
    unique_by=lambda case: case.run_id,
)
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(RunStatus).map(str),
        "flow": st.sampled_from(["f", "g", "流れ", "a&b=c #+%", "none"]),
        "tag": st.sampled_from(["x", "y", "z"]),
        "workflow_yaml_sha256": st.sampled_from(["1", "2", "3"]),
        "updated_after": TIMES.filter(lambda at: at is not None),
    },
)


def naive(cases: list[Case], query: dict[str, Any], tenant: str | None) -> list[str]:
    fields = {"status": "status", "flow": "flow_name", "tag": "tag", "workflow_yaml_sha256": "workflow_yaml_sha256"}
    found = [case for case in cases if tenant is None or case.tenant_id == tenant]
    for name, attribute in fields.items():
        if name in query:
            found = [case for case in found if getattr(case, attribute) == query[name]]
    if "updated_after" in query:
        found = [case for case in found if case.position[0] > query["updated_after"]]
    return [case.run_id for case in sorted(found, key=lambda case: case.position, reverse=True)]


@settings(max_examples=120, deadline=None)
@given(cases=CASES, query=QUERIES, limit=st.integers(1, 9), tenant=st.sampled_from([None, "t"]))
def test_pages_are_what_a_naive_list_gives(
    cases: list[Case], query: dict[str, Any], limit: int, tenant: str | None
) -> None:
    """Through HTTP, page by page with the cursor: each run once, in order, with any filters, for any tenant."""

    async def main() -> None:
        office = Office(auth=tenant is not None)
        client = office.key(tenant)[1] if tenant is not None else office.client
        async with office.open():
            for case in cases:
                office.write(status=case.status, **{k: v for k, v in asdict(case).items() if k != "status"})
            await office.caught_up()
            wanted, found, cursor = naive(cases, query, tenant), [], None
            plain = (await client.get("/runs?" + urlencode({**query, "limit": 200}))).json
            first = plain if isinstance(plain, list) else plain["items"]
            assert [each["run_id"] for each in first] == wanted
            while True:
                begin = {"updated_after": -1.0} if cursor is None else {"cursor": cursor}
                answer = await client.get("/runs?" + urlencode({**begin, **query, "limit": limit}))
                page = answer.json
                assert len(page["items"]) <= limit
                found += [each["run_id"] for each in page["items"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
                assert len(page["items"]) == limit
            assert found == wanted

    run_virtual(main, backend="asyncio")


@settings(max_examples=60, deadline=None)
@given(cases=CASES, data=st.data())
def test_a_walk_misses_no_run_that_stays_as_it_is(cases: list[Case], data: st.DataObject) -> None:
    """While others are written and removed between two pages."""
    movers = data.draw(st.lists(st.sampled_from(cases), max_size=10) if cases else st.just([]))

    async def main() -> None:
        async with Office().open() as office:
            for case in cases:
                office.write(status=case.status, **{k: v for k, v in asdict(case).items() if k != "status"})
            await office.caught_up()
            found: list[str] = []
            query: dict[str, Any] = {"updated_after": -1.0, "limit": 3}
            changes = iter(movers)
            while True:
                page = (await office.client.get("/runs?" + urlencode(query))).json
                found += [each["run_id"] for each in page["items"]]
                if page["next_cursor"] is None:
                    break
                query["cursor"] = page["next_cursor"]
                mover = next(changes, None)
                if mover is not None:
                    office.write(mover.run_id, updated_at=2e9)
                    await office.caught_up()
            moved = {case.run_id for case in movers}
            assert [each for each in found if each not in moved] == [
                each for each in naive(cases, {}, None) if each not in moved
            ]

    run_virtual(main, backend="asyncio")


@settings(max_examples=100, deadline=None)
@given(st.text() | st.binary().map(lambda data: data.hex()), st.sampled_from(["cursor", "limit", "status", "flow"]))
def test_no_text_breaks_a_list(text: str, field: str) -> None:
    """An answer or a 422, never anything else."""

    async def main() -> None:
        async with Office().open() as office:
            office.write("a")
            query = urlencode({field: text.encode("utf-8", "surrogatepass")})
            assert (await office.client.get(f"/runs?{query}")).status in (200, 422)

    run_virtual(main, backend="asyncio")
