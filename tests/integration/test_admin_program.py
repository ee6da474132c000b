"""The program `pyoco-server-admin`."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.programs import wait_ready
from tests.integration.pyoco_programs import admin, run, running

AUTH = {"PYOCO_HTTP_AUTH_MODE": "api_key"}


def test_a_key_from_its_birth_to_its_end(tmp_path: Path) -> None:
    """It opens the gateway, an admin's the admin routes too; revoked it is refused at once; no secret is logged."""
    with (
        nats_server(tmp_path / "store") as nats,
        running("server", "up", "--port", "0", "--nats-url", nats.url, cwd=tmp_path, **AUTH) as gateway,
    ):
        url = gateway.url()
        wait_ready(url)
        key, boss = (
            admin(nats.url, "create", "--tenant", "demo", cwd=tmp_path),
            admin(nats.url, "create", "--tenant", "ops", "--admin", cwd=tmp_path),
        )
        assert {"key_id", "tenant_id", "api_key", "created_at"} <= set(key)

        def ask(path: str, made: dict[str, str]) -> int:
            return httpx.get(f"{url}{path}", headers={"X-API-Key": made["api_key"]}).status_code

        assert (ask("/runs", key), ask("/actors", key), ask("/actors", boss)) == (200, 403, 200)
        listed = admin(nats.url, "list", cwd=tmp_path)
        assert [(each["tenant_id"], each["admin"], each["revoked_at"]) for each in listed] == [
            ("ops", True, None),
            ("demo", False, None),
        ]
        revoked = admin(nats.url, "revoke", "--key-id", key["key_id"], cwd=tmp_path)
        deadline = time.monotonic() + 1.0
        while ask("/runs", key) != 403:
            assert time.monotonic() < deadline, "a revoked key still works"
        assert ask("/runs", boss) == 200
        assert admin(nats.url, "revoke", "--key-id", key["key_id"], cwd=tmp_path) == revoked
        table = run("admin", "api-key", "list", "--output", "table", "--nats-url", nats.url, cwd=tmp_path)
        assert "revoked" in table.stdout
        assert gateway.stop(signal.SIGTERM) == 0
        secrets = [made["api_key"].partition(".")[2] for made in (key, boss)]
        assert not [each for each in secrets if each in str(gateway.lines) + table.stdout + str(listed)]


def test_a_pepper_of_blanks_is_none(tmp_path: Path) -> None:
    """A key made with blanks for a pepper is right at a gateway without one, as with the published program."""
    with (
        nats_server(tmp_path / "store") as nats,
        running("server", "--port", "0", "--nats-url", nats.url, cwd=tmp_path, **AUTH) as gateway,
    ):
        url = gateway.url()
        wait_ready(url)
        key = admin(nats.url, "create", "--tenant", "demo", cwd=tmp_path, PYOCO_AUTH_PEPPER="   ")
        assert httpx.get(f"{url}/runs", headers={"X-API-Key": key["api_key"]}).status_code == 200


def test_what_is_wrong_is_said_with_an_example(tmp_path: Path) -> None:
    """Exit 1; an unknown key is answered as the published program does; a NATS that is away is named."""
    for arguments in (["api-key"], ["api-key", "create"], ["api-key", "destroy"], []):
        done = run("admin", *arguments, cwd=tmp_path)
        assert done.returncode == 1
        assert "for example: pyoco-server-admin api-key create --tenant demo" in done.stderr
    done = run("admin", "--nats-url", "nats://127.0.0.1:1", "api-key", "list", cwd=tmp_path)
    assert (done.returncode, "127.0.0.1:1 does not answer" in done.stderr) == (1, True)
    with nats_server(tmp_path / "store") as nats:
        done = run("admin", "--nats-url", nats.url, "api-key", "revoke", "--key-id", "0123456789ab", cwd=tmp_path)
        assert done.returncode == 1
        assert done.stdout == '{"error": "not_found", "key_id": "0123456789ab"}\n'
        wrong = run("admin", "--nats-url", nats.url, "api-key", "create", "--tenant", "a b", cwd=tmp_path)
        assert (wrong.returncode, "cannot be a tenant" in wrong.stderr) == (1, True)
