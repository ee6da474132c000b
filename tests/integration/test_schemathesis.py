"""schemathesis against the real program: no 5xx, and no status, content type, header or body that is not described."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pyoco_runtime.testing.nats_server import nats_server
from tests.integration.gateway_client import Gateway, gateway, good, make_keys, until
from tests.integration.programs import BIN, environment
from tests.integration.worker_client import worker

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
STREAMS = "/watch$"
WHEEL = "demo-1.0-py3-none-any.whl"
LIMIT_SEC = 240
SEED = "4"


def examined(one: Gateway, cwd: Path, *options: str) -> None:
    """Let schemathesis ask whatever the description allows, and what it does not."""
    command = [str(BIN / "st"), "run", f"{one.url}/openapi.json", "--checks", CHECKS, "--seed", SEED, *options]
    env = environment(
        PYTHONPATH=str(Path(__file__).parents[2]), SCHEMATHESIS_HOOKS="tests.integration.schemathesis_hooks"
    )
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=LIMIT_SEC, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert good(one.http.get("/health")) == {"status": "ok"}


def test_without_api_keys(tmp_path: Path) -> None:
    """Every route, with what is right and what is wrong; then chains of requests along the links of the answers."""
    with nats_server(tmp_path / "store") as nats, worker(tmp_path, nats.url), gateway(tmp_path, nats.url) as one:
        one.submit("hello")
        one.submit("no-such-flow")
        until(lambda: good(one.http.get("/dlq"))["items"], bool)
        good(one.http.post("/wheels", files={"wheel": (WHEEL, b"wheel")}))
        examined(one, tmp_path, "--max-examples", "60", "--exclude-path-regex", STREAMS)
        examined(one, tmp_path, "--max-examples", "5", "--include-path-regex", STREAMS, "--phases", "examples,fuzzing")


@pytest.mark.parametrize("is_admin", [True, False])
def test_with_an_api_key(is_admin: bool, tmp_path: Path) -> None:
    """An admin's and somebody's: what a key may not do is described too."""
    with nats_server(tmp_path / "store") as nats, gateway(tmp_path, nats.url, PYOCO_HTTP_AUTH_MODE="api_key") as one:
        (holder,) = make_keys(nats.url, "t1", admin=is_admin)
        until(lambda: one.http.get("/ready").status_code, lambda status: status == 200)
        key = f"X-API-Key: {holder.plain}"
        examined(one, tmp_path, "-H", key, "--max-examples", "15", "--exclude-path-regex", STREAMS)
