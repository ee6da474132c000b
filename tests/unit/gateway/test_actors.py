"""GET /actors and POST /actors/{process}/{actor}/restart."""

from __future__ import annotations

import pytest

from tests.unit.gateway.support import Office, on_asyncio


@on_asyncio
async def test_the_trees_of_all_processes() -> None:
    """As their consoles tell them, crashes and mailboxes included."""
    async with Office().open() as office:
        answer = await office.client.get("/actors")
        assert answer.status == 200
        (report,) = answer.json
        assert (report["process"], report["role"]) == ("p-1", "all")
        http = report["tree"]["children"][0]
        assert (http["path"], http["restarts"], http["mailbox"]) == ("runtime/gateway/http", 3, 7)
        assert http["last_crash"]["type"] == "ValueError"


@pytest.mark.parametrize("actor", ["http", "gateway/http", "runtime/gateway/http"])
@on_asyncio
async def test_one_actor_is_restarted(actor: str) -> None:
    """By its name, or by a part of its path that tells it."""
    async with Office().open() as office:
        answer = await office.client.post(f"/actors/p-1/{actor}/restart")
        assert (answer.status, answer.json) == (200, {"process": "p-1", "actor": "runtime/gateway/http"})
        assert office.house.restarted == [("p-1", actor)]


@on_asyncio
async def test_an_actor_that_is_not_there_is_404() -> None:
    """ERR-0033, with what there is."""
    async with Office().open() as office:
        answer = await office.client.post("/actors/p-1/x/restart")
        assert (answer.status, answer.err_id) == (404, "ERR-PYOCO-0033")
        assert "no actor" in answer.json["detail"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/actors"), ("POST", "/actors/p-1/http/restart")])
@on_asyncio
async def test_under_api_keys_it_takes_an_admin(method: str, path: str) -> None:
    """403 ERR-0039 for all others: crash messages may hold anything."""
    async with Office(auth=True).open() as office:
        answer = await office.key("demo")[1].ask(method, path)
        assert (answer.status, answer.err_id) == (403, "ERR-PYOCO-0039")
        assert answer.json["detail"].startswith("admin key required: ")
        assert "secret" not in answer.text
        assert not office.house.restarted
        assert (await office.key("demo", admin=True)[1].ask(method, path)).status == 200
