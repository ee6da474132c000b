"""API keys of either admin program at either gateway."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import frozen

from tests.compat.comparison import differences
from tests.compat.house import House, submit, url_of
from tests.compat.peer import call, library, peer_gateway, run_peer
from tests.compat.test_answers import listed
from tests.integration.gateway_client import client_of, gateway, good, until
from tests.integration.programs import BIN, environment
from tests.integration.worker_client import PATIENCE_SEC

AUTH = {"PYOCO_HTTP_AUTH_MODE": "api_key", "PYOCO_AUTH_PEPPER": "salt of the earth"}
SECRET = "A" * 32


@frozen
class Locked:
    """Both gateways of a house, asking for keys, and the admin programs for it."""

    place: Path
    nats_url: str
    ours: httpx.Client
    theirs: httpx.Client

    @property
    def both(self) -> tuple[httpx.Client, httpx.Client]:
        """Ours first."""
        return self.ours, self.theirs

    def admin(self, whose: str, *args: str) -> Any:
        """What the admin program says, as data."""
        order, env = ("--nats-url", self.nats_url, "api-key", *args), environment(**AUTH)
        if whose == "theirs":
            done = run_peer("pyoco-server-admin", *order, cwd=self.place, env=env)
        else:
            command = [str(BIN / "python"), "-m", "pyoco_runtime.cli.admin", *order]
            done = subprocess.run(
                command, cwd=self.place, env=env, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def locked(house: House) -> Iterator[Locked]:
    """On the NATS of the house, beside the gateways that ask for nothing."""
    with (
        gateway(house.place, house.nats_url, name="locked", **AUTH) as ours,
        peer_gateway(house.place, house.nats_url, **AUTH) as theirs,
    ):
        until(lambda: ours.http.get("/ready").status_code, lambda found: found == 200)
        yield Locked(house.place, house.nats_url, ours.http, theirs.http)


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_key_of_either_admin_opens_both_gateways_until_either_revokes_it(locked: Locked, whose: str) -> None:
    """To the published client too; the run is stamped, and the other admin lists and revokes the key."""
    other = "theirs" if whose == "ours" else "ours"
    made = locked.admin(whose, "create", "--tenant", "demo")
    key, key_id = made["api_key"], made["key_id"]
    for gate in locked.both:
        [accepted] = library(url_of(gate), call("submit_run", "hello", tag="nobody"), api_key=key)
        for reader in locked.both:
            found = good(reader.get(f"/runs/{accepted['run_id']}", headers={"X-API-Key": key}))
            assert (found["tenant_id"], found["api_key_id"]) == ("demo", key_id)
            ended = good(reader.post(f"/runs/{accepted['run_id']}/cancel", headers={"X-API-Key": key}))
            assert ended["cancel_requested_by"] == f"api_key:{key_id}"
    rows = {each["key_id"]: each for each in locked.admin(other, "list")}
    assert (rows[key_id]["tenant_id"], rows[key_id]["revoked_at"]) == ("demo", None)
    assert locked.admin(other, "revoke", "--key-id", key_id)["key_id"] == key_id
    for gate in locked.both:
        wait_refused(gate, key)


def wait_refused(gate: httpx.Client, key: str) -> None:
    """Wait until the gateway knows that the key is revoked."""
    until(lambda: gate.get("/runs", headers={"X-API-Key": key}).status_code, lambda found: found == 403)


ROUTES = [
    ("GET", "/runs"),
    ("POST", "/runs"),
    ("GET", "/runs/{run}"),
    ("GET", "/runs/{run}/tasks"),
    ("GET", "/runs/{run}/watch"),
    ("POST", "/runs/{run}/cancel"),
    ("GET", "/wheels"),
    ("GET", "/wheels/history"),
    ("GET", "/wheels/demo-1.0-py3-none-any.whl"),
    ("DELETE", "/wheels/demo-1.0-py3-none-any.whl"),
    ("GET", "/health"),
]
KEYS = {"none": None, "malformed": "nonsense", "unknown": f"pyoco_abcdefgh.{SECRET}", "empty": ""}


@pytest.fixture(scope="module")
def foreign(locked: Locked) -> tuple[str, str]:
    """A run of a tenant, and the key of another."""
    mine, yours = (locked.admin("ours", "create", "--tenant", tenant)["api_key"] for tenant in ("mine", "yours"))
    with client_of(url_of(locked.ours), **{"X-API-Key": mine}) as me:
        return submit(me, "hello", "nobody"), str(yours)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_both_refuse_alike(locked: Locked, foreign: tuple[str, str], method: str, path: str, kind: str) -> None:
    """401 without a key, 403 with a wrong one."""
    key = KEYS[kind]
    answers = [ask(gate, method, path.format(run=foreign[0]), key) for gate in locked.both]
    assert differences(*answers) == []
    assert answers[0].status_code == (200 if path == "/health" else 403 if key else 401)


@pytest.mark.parametrize(("method", "path"), [each for each in ROUTES if "{run}" in each[1]])
def test_both_hide_the_runs_of_other_tenants(locked: Locked, foreign: tuple[str, str], method: str, path: str) -> None:
    """404, as if there was no such run."""
    run_id, key = foreign
    answers = [ask(gate, method, path.format(run=run_id), key) for gate in locked.both]
    assert differences(*answers) == []
    assert answers[0].status_code == 404


@pytest.mark.parametrize("path", ["/workers", "/metrics"])
def test_only_ours_asks_for_a_key_everywhere(locked: Locked, path: str) -> None:
    """The contract asks for it; the published gateway does not."""
    assert (locked.ours.get(path).status_code, locked.theirs.get(path).status_code) == (401, 200)
    assert "keys-everywhere" in listed()


def ask(gate: httpx.Client, method: str, path: str, key: str | None) -> httpx.Response:
    """Send it with this key."""
    body = {"flow_name": "hello", "tag": "nobody"} if (method, path) == ("POST", "/runs") else None
    return gate.request(method, path, json=body, headers={} if key is None else {"X-API-Key": key})
