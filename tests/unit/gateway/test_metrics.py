"""GET /metrics."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pyoco_runtime.model.run import RunStatus
from pyoco_runtime.model.worker import WorkerState
from pyoco_runtime.testing.faults import Lost
from pyoco_runtime.testing.memory_jetstream import virtual_clock
from tests.unit.gateway.support import Client, Office, on_asyncio

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scrape(client: Client) -> Figures:
    """All samples; no two have the same name and labels."""
    answer = await client.get("/metrics")
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    found: Figures = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def of(figures: Figures, name: str, **labels: str) -> float | None:
    return figures.get((name, frozenset(labels.items())))


@on_asyncio
async def test_the_names_of_the_contract_are_there_from_the_beginning() -> None:
    """With every status, so that a graph begins at zero."""
    async with Office().open() as office:
        found = await scrape(office.client)
        for status in RunStatus:
            assert of(found, "pyoco_runs_total", status=status) == 0
            assert of(found, "pyoco_runs_today_total", status=status) == 0
        assert of(found, "pyoco_workers_alive_total") == of(found, "pyoco_dlq_messages_total") == 0


@on_asyncio
async def test_what_is_stored_is_counted() -> None:
    """Runs by status and flow, those of today, workers that live, dead letters."""
    async with Office().open() as office:
        office.write("a")
        office.write("b", flow_name="g")
        office.write("c", RunStatus.COMPLETED, updated_at=virtual_clock() - 2 * 86400)
        office.work("w")
        office.work("v", WorkerState.STOPPED_GRACEFUL)
        office.bury()
        await office.caught_up()
        found = await scrape(office.client)
        assert of(found, "pyoco_runs_total", status="RUNNING") == 2
        assert of(found, "pyoco_runs_total", status="COMPLETED") == 1
        assert of(found, "pyoco_runs_today_total", status="RUNNING") == 2
        assert of(found, "pyoco_runs_today_total", status="COMPLETED") == 0
        assert of(found, "pyoco_runs_by_flow", flow="g", status="RUNNING") == 1
        assert of(found, "pyoco_workers_alive_total") == 1
        assert of(found, "pyoco_dlq_messages_total") == 1
        assert of(found, "pyoco_run_index_behind") == 0


@on_asyncio
async def test_runs_that_end_are_counted_and_timed() -> None:
    """From the moment that this gateway listens."""
    async with Office().open() as office:
        office.write("a", start_time=5.0)
        office.write("a", RunStatus.COMPLETED, start_time=5.0, end_time=7.0)
        office.write("a", RunStatus.COMPLETED, start_time=5.0, end_time=7.0, error="rewritten")
        office.write("b", RunStatus.FAILED)
        await office.caught_up()
        found = await scrape(office.client)
        assert of(found, "pyoco_runs_ended_total", flow="f", status="COMPLETED") == 1
        assert of(found, "pyoco_runs_ended_total", flow="f", status="FAILED") == 1
        assert of(found, "pyoco_run_duration_seconds_count", flow="f") == 1
        assert of(found, "pyoco_run_duration_seconds_sum", flow="f") == 2.0
        assert of(found, "pyoco_run_duration_seconds_bucket", flow="f", le="1.0") == 0
        assert of(found, "pyoco_run_duration_seconds_bucket", flow="f", le="2.5") == 1
        assert of(found, "pyoco_run_duration_seconds_bucket", flow="f", le="+Inf") == 1


@on_asyncio
async def test_the_queue_by_tag() -> None:
    """How many wait and for how long: what an autoscaler needs."""
    async with Office().open() as office:
        await office.client.post("/runs/batch", [{"flow_name": "f", "tag": "gpu"}] * 3)
        await office.client.post("/runs", {"flow_name": "f"})
        async with office.process.work_queue.pulling("gpu") as puller:
            await puller.take(1)
        await anyio.sleep(10)
        found = await scrape(office.client)
        assert of(found, "pyoco_queue_waiting", tag="gpu") == 2
        assert of(found, "pyoco_queue_in_hand", tag="gpu") == 1
        assert of(found, "pyoco_queue_waiting", tag="default") == 1
        assert of(found, "pyoco_queue_oldest_waiting_seconds", tag="gpu") == pytest.approx(10)


@on_asyncio
async def test_requests_by_route() -> None:
    """By pattern, never by path, and whoever serves them; unknown paths are one."""
    async with Office().open() as office:
        await office.client.post("/runs", {"flow_name": "f"})
        await office.client.post("/runs", {})
        await office.client.get("/runs")
        for path in ("/runs/a", "/runs/b", "/nowhere", "/else"):
            await office.client.get(path)
        found = await scrape(office.client)
        name = "pyoco_http_request_duration_seconds_count"
        assert of(found, name, method="POST", route="/runs", status="200") == 1
        assert of(found, name, method="POST", route="/runs", status="422") == 1
        assert of(found, name, method="GET", route="/runs", status="200") == 1
        assert of(found, name, method="GET", route="/runs/<run_id>", status="404") == 2
        assert of(found, name, method="GET", route="(none)", status="404") == 2
        assert "/nowhere" not in str(found)


@on_asyncio
async def test_methods_that_nobody_knows_make_no_series_of_their_own() -> None:
    """A client may send any word as a method; memory has a bound."""
    async with Office().open() as office:
        for n in range(200):
            await office.client.ask(f"X{n}", "/runs")
            await office.client.ask(f"X{n}", "/nowhere")
        found = await scrape(office.client)
        methods = {dict(labels).get("method") for _, labels in found}
        assert len(methods) < 15


@on_asyncio
async def test_the_actors_of_this_process() -> None:
    """Restarts and mailboxes; not those of single runs, which would make one series each."""
    async with Office().open() as office:
        found = await scrape(office.client)
        labels: dict[str, Any] = {"process": "p-1", "actor": "runtime/gateway/http"}
        assert of(found, "pyoco_actor_restarts_total", **labels) == 3
        assert of(found, "pyoco_actor_mailbox_depth", **labels) == 7
        assert "run:1" not in str(found)


@on_asyncio
async def test_watchers_are_counted() -> None:
    """While their streams are open."""
    async with Office().open() as office:
        office.write("a")
        async with office.client.watch("/runs/a/watch") as one, office.client.watch("/runs/watch") as two:
            await one.next()
            await two.next()
            assert of(await scrape(office.client), "pyoco_watchers") == 2
        assert of(await scrape(office.client), "pyoco_watchers") == 0


@on_asyncio
async def test_what_costs_a_round_trip_is_asked_for_once_a_second() -> None:
    """However often somebody scrapes."""
    async with Office().open() as office:
        office.bury()
        await office.caught_up()
        assert of(await scrape(office.client), "pyoco_dlq_messages_total") == 1
        office.bury()
        assert of(await scrape(office.client), "pyoco_dlq_messages_total") == 1
        await anyio.sleep(1)
        assert of(await scrape(office.client), "pyoco_dlq_messages_total") == 2


@pytest.mark.parametrize("operation", ["gauge.read", "dead_letters.count"])
@on_asyncio
async def test_a_hiccup_is_503_and_asked_again_at_once(operation: Any) -> None:
    """Not after a second."""
    async with Office().open() as office:
        office.faults.next(operation, Lost.BEFORE)
        answer = await office.client.get("/metrics")
        assert (answer.status, answer.err_id) == (503, "ERR-PYOCO-0003")
        assert (await office.client.get("/metrics")).status == 200


@on_asyncio
async def test_an_index_that_is_behind_shows() -> None:
    """Whoever draws graphs of it can tell."""
    async with Office().open() as office:
        office.faults.rate("run_store.watch", Lost.BEFORE, 1.0)
        office.faults.next("run_store.watch_next", Lost.BEFORE)
        office.write("a")
        await anyio.sleep(2)
        assert of(await scrape(office.client), "pyoco_run_index_behind") == 1


@on_asyncio
async def test_under_api_keys_everybody_sees_his_own_figures() -> None:
    """Those of the house only admins."""
    async with Office(auth=True).open() as office:
        for n, tenant in enumerate(("a", "a", "b", None)):
            office.write(f"r-{n}", tenant_id=tenant, flow_name=f"flow-{tenant}")
            office.write(f"r-{n}", RunStatus.COMPLETED, tenant_id=tenant, flow_name=f"flow-{tenant}")
            office.bury(tenant_id=tenant)
        await office.caught_up()
        for tenant, count in (("a", 2), ("b", 1), ("c", 0)):
            found = await scrape(office.key(tenant)[1])
            assert of(found, "pyoco_runs_total", status="COMPLETED") == count
            assert of(found, "pyoco_runs_today_total", status="COMPLETED") == count
            assert of(found, "pyoco_dlq_messages_total") == count
            assert (of(found, "pyoco_runs_ended_total", flow=f"flow-{tenant}", status="COMPLETED") or 0) == count
            flows = {dict(labels)["flow"] for _, labels in found if "flow" in dict(labels)}
            assert flows <= {f"flow-{tenant}"}
            assert not [name for name, _ in found if name.startswith(("pyoco_queue", "pyoco_http", "pyoco_actor"))]
        found = await scrape(office.key("a", admin=True)[1])
        assert of(found, "pyoco_actor_mailbox_depth", process="p-1", actor="runtime/gateway/http") == 7
